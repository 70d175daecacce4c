package jsonrpc

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// MaxQueued is the number of queued bytes over which senders block.
	MaxQueued = 1 << 20
	// writeChunk is the maximum size of one write in bytes, a quarter of a pipe's buffer. Small writes let a slow client
	// that reads a large message in parts count as making progress.
	writeChunk = 16 << 10
)

// These errors are the results of sending to a client that reads too slowly.
var (
	ErrStalled = errors.New("the client reads nothing")
	ErrFull    = errors.New("the client reads too slowly")
)

// Outbox is a queue of whole messages to one client; a single goroutine writes them in order.
// Senders block while [MaxQueued] bytes are queued, so that a client that does not read cannot use up memory.
type Outbox struct {
	out io.Writer

	mu           sync.Mutex
	room         sync.Cond // signalled when the queue shrinks, a write ends or err is set
	queue        [][]byte
	queued       int
	writing      bool      // a write is in progress
	lastProgress time.Time // when that write last made progress
	err          error
	ready        chan struct{}   // holds one token while a message is queued
	began        chan struct{}   // holds one token after a write began
	Ctx          context.Context // ends when err is set
	cancel       context.CancelFunc

	waiters int // senders blocked by a full queue

	// [Outbox.SendDetached] calls these. They must be set before the first message is sent.
	Reserve func(answer int) bool // reserves that many bytes for a waiting answer; false if there is no room
	Release func(answer int)      // returns the reserved bytes when the answer is queued
}

// NewOutbox returns an outbox that writes to out once [Outbox.Run] runs.
func NewOutbox(out io.Writer) *Outbox {
	o := &Outbox{out: out, ready: make(chan struct{}, 1), began: make(chan struct{}, 1)}
	o.Ctx, o.cancel = context.WithCancel(context.Background())
	o.room.L = &o.mu
	return o
}

// Send queues a message. It blocks while the queue is full. It is a [Send] function.
func (o *Outbox) Send(message []byte, answer func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.enqueue(message, answer)
}

// SendDetached is Send for a client that shares call slots with others: a client that does not read must not hold
// them. If the queue is full, an answer frees its call's slot before it waits, and another message fails with
// [ErrFull]. If reserve refuses the answer, the outbox fails with [ErrStalled].
func (o *Outbox) SendDetached(message []byte, answer func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.full(len(message)) {
		return o.enqueue(message, answer)
	}
	if answer == nil {
		return ErrFull
	}
	answer()
	if !o.Reserve(len(message)) {
		o.failLocked(ErrStalled)
		return o.err
	}
	defer o.Release(len(message))
	return o.enqueue(message, nil)
}

// full reports whether a message of size bytes must wait. An empty queue accepts any size. The caller must hold mu.
func (o *Outbox) full(size int) bool {
	return o.err == nil && o.queued > 0 && o.queued+size > MaxQueued
}

// enqueue waits until the queue has room, calls answer unless nil, and queues the message. The caller must hold mu.
func (o *Outbox) enqueue(message []byte, answer func()) error {
	o.waiters++
	for o.full(len(message)) {
		o.room.Wait()
	}
	o.waiters--
	if o.err != nil {
		return o.err
	}
	if answer != nil {
		answer()
	}
	o.queue = append(o.queue, message)
	o.queued += len(message)
	wake(o.ready)
	return nil
}

// wake puts a token into a channel that holds one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// HasWaiters reports whether senders are blocked by a full queue.
func (o *Outbox) HasWaiters() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiters > 0
}

// Run writes queued messages until the outbox fails.
func (o *Outbox) Run() {
	for {
		select {
		case <-o.ready:
		case <-o.Ctx.Done():
			return
		}
		for {
			message, ok := o.nextWrite()
			if !ok {
				break
			}
			if err := o.write(message); err != nil {
				o.Fail(err)
				return
			}
		}
	}
}

// nextWrite removes the next message from the queue and joins small messages that follow it into one write of up to
// 16 KiB. It returns false if the queue is empty or the outbox has failed.
func (o *Outbox) nextWrite() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = false
	if o.err != nil || len(o.queue) == 0 {
		o.room.Broadcast()
		return nil, false
	}
	batch, n := o.queue[0], 1
	for n < len(o.queue) && len(batch)+len(o.queue[n]) <= writeChunk {
		if n == 1 {
			batch = append(make([]byte, 0, writeChunk), batch...)
		}
		batch = append(batch, o.queue[n]...)
		n++
	}
	clear(o.queue[:n])
	o.queue = o.queue[n:]
	o.queued -= len(batch)
	if len(o.queue) == 0 {
		o.queue = nil
	}
	o.writing, o.lastProgress = true, time.Now()
	wake(o.began)
	o.room.Broadcast()
	return batch, true
}

func (o *Outbox) write(message []byte) error {
	for len(message) > 0 {
		n, err := o.out.Write(message[:min(len(message), writeChunk)])
		if err != nil {
			return err
		}
		message = message[n:]
		o.mu.Lock()
		o.lastProgress = time.Now()
		o.mu.Unlock()
	}
	return nil
}

// Fail stops the outbox: it drops queued messages, and senders and Flush return err. Only the first error counts.
func (o *Outbox) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

// failLocked is Fail for a caller that holds mu.
func (o *Outbox) failLocked(err error) {
	if o.err != nil {
		return
	}
	o.err, o.queue, o.queued = err, nil, 0
	o.cancel()
	o.room.Broadcast()
}

// stalled returns the time for which the current write has made no progress; ok is false if there is no write.
func (o *Outbox) stalled() (d time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.lastProgress), o.writing
}

// Flush waits until every queued message is written or the outbox fails, and returns the error of the outbox.
func (o *Outbox) Flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && (o.writing || len(o.queue) > 0) {
		o.room.Wait()
	}
	return o.err
}

// StallPollInterval is the interval at which [Outbox.FailWhenStalled] checks for progress.
const StallPollInterval = 50 * time.Millisecond

// FailWhenStalled fails the outbox with [ErrStalled] once a write has made no progress for longer than
// limit(stalled), and returns that limit. It returns 0 if ctx ends or the outbox fails first. Time in which this
// process was suspended does not count, nor does a slow write while hasRoom reports room in the client's pipe.
func (o *Outbox) FailWhenStalled(
	ctx context.Context, limit func(stalled time.Duration) time.Duration, hasRoom func() bool,
) time.Duration {
	for {
		if _, writing := o.stalled(); writing {
			if l := o.watchWrites(ctx, limit, hasRoom); l > 0 {
				return l
			}
		}
		select {
		case <-o.began:
		case <-o.Ctx.Done():
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// watchWrites is [Outbox.FailWhenStalled] until no write is in progress: then it returns 0, too.
func (o *Outbox) watchWrites(
	ctx context.Context, limit func(stalled time.Duration) time.Duration, hasRoom func() bool,
) time.Duration {
	tick := time.NewTicker(StallPollInterval)
	defer tick.Stop()
	var stalled time.Duration
	for {
		select {
		case <-tick.C:
			now, writing := o.stalled()
			if !writing {
				return 0
			}
			if stalled = min(stalled+StallPollInterval, now); hasRoom() {
				stalled = 0
			}
			if l := limit(stalled); stalled > l {
				o.Fail(ErrStalled)
				return l
			}
		case <-o.Ctx.Done():
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}
