package server

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// maxQueued is how many bytes may wait for the client before senders do.
	maxQueued = 1 << 20
	// writeChunk is how much is written at once, a quarter of a pipe: what a slow client takes of a large
	// message counts as progress.
	writeChunk = 16 << 10
)

var (
	errStalled = errors.New("the client reads nothing")
	errFull    = errors.New("the client is too far behind")
)

// outbox is the one way out: whole messages, in the order in which they were put, by one writer.
// Senders wait while much is queued, so that a client that does not read cannot grow memory.
type outbox struct {
	out io.Writer

	mu     sync.Mutex
	room   sync.Cond // something was taken out, or err was set
	queue  [][]byte
	queued int
	busy   bool      // a write is going on
	since  time.Time // when it last made progress
	err    error
	put    chan struct{}   // a message waits; one token
	done   context.Context // ends when err is set
	end    context.CancelFunc

	waiting int                   // senders that wait for room
	keep    func(answer int) bool // what hand may have wait, in bytes
	letGo   func(answer int)
}

func newOutbox(out io.Writer) *outbox {
	o := &outbox{out: out, put: make(chan struct{}, 1)}
	o.done, o.end = context.WithCancel(context.Background())
	o.room.L = &o.mu
	return o
}

// send queues a message; it is a [Send].
func (o *outbox) send(message []byte, answer func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.add(message, answer)
}

// hand is send for calls of many clients, none of which may keep the places of all by not reading: an answer
// that waits does so without its call's place, and what is no answer does not wait.
func (o *outbox) hand(message []byte, answer func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.full(len(message)) {
		return o.add(message, answer)
	}
	if answer == nil {
		return errFull
	}
	answer()
	if !o.keep(len(message)) {
		o.broken(errStalled)
		return o.err
	}
	defer o.letGo(len(message))
	return o.add(message, nil)
}

// full says that a message of that size has to wait. It is called with mu held, as add.
func (o *outbox) full(size int) bool {
	return o.err == nil && o.queued > 0 && o.queued+size > maxQueued
}

func (o *outbox) add(message []byte, answer func()) error {
	o.waiting++
	for o.full(len(message)) {
		o.room.Wait()
	}
	o.waiting--
	if o.err != nil {
		return o.err
	}
	if answer != nil {
		answer()
	}
	o.queue = append(o.queue, message)
	o.queued += len(message)
	select {
	case o.put <- struct{}{}:
	default:
	}
	return nil
}

// behind says that somebody waits for room.
func (o *outbox) behind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting > 0
}

// run writes until the outbox is broken.
func (o *outbox) run() {
	for {
		select {
		case <-o.put:
		case <-o.done.Done():
			return
		}
		for {
			message, ok := o.take()
			if !ok {
				break
			}
			if err := o.write(message); err != nil {
				o.fail(err)
				return
			}
		}
	}
}

// take returns what waits, several small messages in one write.
func (o *outbox) take() ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = false
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
	o.busy, o.since = true, time.Now()
	o.room.Broadcast()
	return batch, true
}

func (o *outbox) write(message []byte) error {
	for len(message) > 0 {
		n, err := o.out.Write(message[:min(len(message), writeChunk)])
		if err != nil {
			return err
		}
		message = message[n:]
		o.mu.Lock()
		o.since = time.Now()
		o.mu.Unlock()
	}
	return nil
}

// fail breaks the outbox: senders and flush return with the error, and what waits is dropped.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken(err)
}

// broken is called with mu held.
func (o *outbox) broken(err error) {
	if o.err != nil {
		return
	}
	o.err, o.queue, o.queued = err, nil, 0
	o.end()
	o.room.Broadcast()
}

// stalled says for how long the write that is going on has made no progress.
func (o *outbox) stalled() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.busy {
		return 0
	}
	return time.Since(o.since)
}

// flush waits until everything queued is written, or the outbox is broken.
func (o *outbox) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && (o.busy || len(o.queue) > 0) {
		o.room.Wait()
	}
	return o.err
}
