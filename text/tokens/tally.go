package tokens

import (
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// maxCarry is the maximum length in bytes of an unfinished piece. A longer piece is cut, and the count is then not
// exact.
const maxCarry = 1 << 20

// A goroutine counts a long text in jobs of jobSize bytes. Each writer may be ownAhead bytes ahead of its goroutine,
// and all writers together may use sharedAhead bytes more: a fast writer seldom waits, and many writers need little
// memory.
const (
	jobSize     = 64 << 10
	ownAhead    = 256 << 10
	sharedAhead = ExactLimit
)

// headSize is the number of bytes counted exactly of a stream that is then estimated: a whole number of jobs.
const headSize = 4 * jobSize

// shared is the number of bytes of sharedAhead in use.
var shared atomic.Int64

// Tally counts a stream: exactly up to [ExactLimit] bytes; a longer one from samples. From 64 KiB on it counts in a
// goroutine, concurrently with the writer. Write blocks only if the writer is 256 KiB ahead and the 16 MiB shared by
// all writers are used up: until a stream is longer than ExactLimit, nobody knows whether its count is needed. Apart
// from that text, a Tally takes at most about 2 MiB. The goroutine exits when it is idle, so a Tally may be dropped at
// any time. The methods of a Tally are not safe for concurrent use.
type Tally struct {
	c      *Counter
	seen   int64
	limit  int64  // number of bytes up to which the stream is counted exactly
	block  []byte // the bytes not queued yet of the first limit bytes
	sample sampler
	early  []window // samples of the first limit bytes

	mu       sync.Mutex
	changed  sync.Cond
	queue    []countingJob
	waiting  int64 // number of bytes in the queue
	borrowed int64 // number of bytes of sharedAhead used by this Tally
	running  bool
	spare    [][]byte

	// Owned by the goroutine while it runs, else by the caller:
	exact   int64  // token count so far of the first limit bytes
	head    int64  // token count of the first headSize bytes
	carry   []byte // text whose last piece may still grow
	cut     bool   // a piece longer than maxCarry was cut, so the count is not exact
	samples samples
	defect  error // the panic of the goroutine, if any
}

// countingJob is a text to count.
type countingJob struct {
	text []byte
	of   int64 // length of the block if the text is a sample window of a block, else 0
	head bool  // the text ends the first headSize bytes
}

// Tally returns a counter for a stream.
func (c *Counter) Tally() *Tally {
	t := &Tally{c: c, limit: ExactLimit}
	t.changed.L = &t.mu
	return t
}

// Estimate makes the tally estimate a stream of over 256 KiB, from one sample in place of rarely samples. With 1, the
// estimate of a stream longer than ExactLimit stays the same. Estimate must be called before Write.
func (t *Tally) Estimate(rarely int64) { t.limit, t.sample.rarely = headSize, rarely }

// Write adds text to the stream. It returns no error.
func (t *Tally) Write(p []byte) (int, error) {
	n := len(p)
	for room := t.limit - t.seen; room > 0 && len(p) > 0; room = t.limit - t.seen {
		step := p[:min(int64(len(p)), room, int64(jobSize-len(t.block)))]
		if t.seen < headSize { // jobs end at headSize
			t.sample.seed = uint64(crc32.Update(uint32(t.sample.seed), castagnoli(), step))
		} else {
			t.sample.write(step, func(w window) { t.early = append(t.early, w) })
		}
		if t.block == nil {
			t.block = t.buffer()
		}
		t.block = append(t.block, step...)
		if len(t.block) == jobSize {
			t.enqueue(countingJob{text: t.block, head: t.seen+int64(len(step)) == headSize})
			t.block = nil
		}
		t.seen += int64(len(step))
		p = p[len(step):]
	}
	if len(p) > 0 && t.seen == t.limit {
		t.dropExact()
	}
	t.seen += int64(len(p))
	t.sample.write(p, t.enqueueWindow)
	return n, nil
}

func (t *Tally) enqueueWindow(w window) { t.enqueue(countingJob{text: w.text, of: w.of}) }

// dropExact removes the jobs after the first headSize bytes from the queue, except the one being counted, and queues
// the samples of their text instead. The result does not depend on how many were counted until then.
func (t *Tally) dropExact() {
	t.mu.Lock()
	keep := 1 + max(0, slices.IndexFunc(t.queue, func(j countingJob) bool { return j.head }))
	for _, j := range t.queue[min(keep, len(t.queue)):] {
		t.waiting -= int64(len(j.text))
	}
	t.queue = slices.Clone(t.queue[:min(keep, len(t.queue))])
	t.spare = nil
	t.returnShared()
	t.mu.Unlock()
	for _, w := range t.early {
		t.enqueueWindow(w)
	}
	t.early = nil
}

// castagnoli takes 0.2 ms to build, and not every process counts a stream, so it is built on first use.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// buffer returns a used buffer, or nil.
func (t *Tally) buffer() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := len(t.spare) - 1; last >= 0 {
		b := t.spare[last]
		t.spare = t.spare[:last]
		return b
	}
	return nil
}

// enqueue queues a job and starts the goroutine if it is not running. It blocks while the queue is full.
func (t *Tally) enqueue(j countingJob) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.reserve(int64(len(j.text))) {
		t.changed.Wait()
	}
	t.queue = append(t.queue, j)
	t.waiting += int64(len(j.text))
	if !t.running {
		t.running = true
		go t.countJobs()
	}
}

// reserve reports whether n more bytes may be queued, and reserves bytes beyond ownAhead from sharedAhead.
func (t *Tally) reserve(n int64) bool {
	missing := t.waiting + n - ownAhead - t.borrowed
	if missing <= 0 {
		return true
	}
	if shared.Add(missing) > sharedAhead {
		shared.Add(-missing)
		return false
	}
	t.borrowed += missing
	return true
}

// countJobs counts the queued jobs in order until the queue is empty.
func (t *Tally) countJobs() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.queue) > 0 {
		j := t.queue[0]
		t.mu.Unlock()
		if t.defect == nil {
			panics.Into(&t.defect, func() { t.countJob(j) })
		}
		t.mu.Lock()
		t.finishJob(j)
		t.changed.Signal()
	}
	t.queue, t.running = nil, false
	t.changed.Signal()
}

// finishJob removes the first job from the queue and returns its bytes to sharedAhead.
func (t *Tally) finishJob(j countingJob) {
	t.queue[0] = countingJob{}
	t.queue = t.queue[1:]
	t.waiting -= int64(len(j.text))
	t.returnShared()
	if cap(j.text) >= jobSize && len(t.spare) < ownAhead/jobSize {
		t.spare = append(t.spare, j.text[:0])
	}
}

// returnShared returns the bytes of sharedAhead that the queue no longer needs.
func (t *Tally) returnShared() {
	if back := t.borrowed - max(0, t.waiting-ownAhead); back > 0 {
		t.borrowed -= back
		shared.Add(-back)
	}
}

func (t *Tally) countJob(j countingJob) {
	if j.of > 0 {
		t.samples.add(t.c.sample(j.text), j.of)
		return
	}
	t.addText(j.text, false)
	if j.head {
		t.head = t.exact + int64(t.c.countAll(t.carry))
	}
}

// addText counts the pieces that can no longer grow, and carries the rest over to the next call.
func (t *Tally) addText(text []byte, final bool) {
	if len(t.carry) > 0 {
		t.carry = append(t.carry, text...)
		text = t.carry
	}
	whole := len(text)
	if !final { // the end of the text may cut a rune
		whole = runes.Complete(text)
	}
	rest := slices.Clone(text[whole:]) // few bytes: replacing invalid bytes may overwrite them
	text = toValidUTF8(text[:whole])
	n, used := t.c.count(text, final)
	if used == 0 && len(text) >= maxCarry {
		n, used = t.c.countAll(text), len(text)
		t.cut = true
	}
	t.exact += int64(n)
	t.carry = append(append(t.carry[:0], text[used:]...), rest...)
}

// Total waits for the count and returns it. It may be called once, after the last Write.
func (t *Tally) Total() Total {
	t.mu.Lock()
	for t.running {
		t.changed.Wait()
	}
	t.mu.Unlock()
	_ = panics.Again(t.defect)
	var total Total
	if rest := t.seen - headSize; t.seen > t.limit {
		t.sample.flush(func(w window) { t.samples.add(t.c.sample(w.text), w.of) })
		total = Total{N: t.head}.plus(t.samples.estimate(rest, float64(t.head)/headSize))
	} else {
		t.addText(t.block, true)
		total.N = t.exact
		if t.cut {
			total.Margin = 0.001
		}
	}
	return total.forModel(t.c.model)
}
