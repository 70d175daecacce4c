package tokens

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// Total is a number of tokens and how sure it is.
type Total struct {
	N      int64
	Margin float64 // 0: exact; 0.01: within 1 %
}

// ExactLimit is how much of a stream is counted exactly, in bytes. What is above it is estimated from samples.
const ExactLimit = 16 << 20

// maxCarry is how long a piece without end may grow before it is cut, in
// bytes. A text that has such a piece is not counted exactly.
const maxCarry = 1 << 20

// A long text is counted by a goroutine of its own, in jobs of jobSize bytes: at most maxJobs wait, and Write with them.
const (
	jobSize = 64 << 10
	maxJobs = 4
)

// Tally counts a stream: exact up to [ExactLimit] bytes, estimated from samples above. From 64 KiB on it counts beside
// the writer, which waits only where it is 256 KiB ahead. It holds at most about 2.5 MiB, and nothing runs where
// nothing was written for a while, so that it may be dropped at any time. Its methods are not safe for concurrent use.
type Tally struct {
	c      *Counter
	seen   int64
	job    []byte // of the first ExactLimit bytes, what is not with the counting yet
	sample sampler

	mu      sync.Mutex
	changed sync.Cond
	jobs    []job
	running bool
	spare   [][]byte

	// Of whom counts; when nobody does, of the caller:
	exact   int64  // tokens of the first ExactLimit bytes
	carry   []byte // what may still grow
	cut     bool   // a piece was cut, so exact is not
	samples []sample
	defect  error // a panic of the goroutine that counts
}

// job is a text to be counted.
type job struct {
	text    []byte
	sampled bool // it is a window's
}

// Tally starts counting a stream.
func (c *Counter) Tally() *Tally {
	t := &Tally{c: c}
	t.changed.L = &t.mu
	return t
}

// Write never fails.
func (t *Tally) Write(p []byte) (int, error) {
	n := len(p)
	if room := ExactLimit - t.seen; room > 0 {
		head := p[:min(int64(len(p)), room)]
		t.seen += int64(len(head))
		p = p[len(head):]
		for len(head) > 0 {
			if t.job == nil {
				t.job = t.buffer()
			}
			step := min(len(head), jobSize-len(t.job))
			t.job = append(t.job, head[:step]...)
			head = head[step:]
			if len(t.job) == jobSize {
				t.hand(job{text: t.job})
				t.job = nil
			}
		}
	}
	t.seen += int64(len(p))
	t.sample.write(p, func(window []byte) { t.hand(job{text: append(t.buffer(), window...), sampled: true}) })
	return n, nil
}

// buffer is one that was counted, or a new one.
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

// hand gives a job to the goroutine that counts, and starts it where none runs.
func (t *Tally) hand(j job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.jobs) >= maxJobs {
		t.changed.Wait()
	}
	t.jobs = append(t.jobs, j)
	if !t.running {
		t.running = true
		go t.work()
	}
}

// work does jobs in their order until there is none.
func (t *Tally) work() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.jobs) > 0 {
		j := t.jobs[0]
		t.mu.Unlock()
		if t.defect == nil {
			panics.Into(&t.defect, func() { t.do(j) })
		}
		t.mu.Lock()
		t.jobs = slices.Delete(t.jobs, 0, 1)
		t.spare = append(t.spare, j.text[:0])
		t.changed.Signal()
	}
	t.running = false
	t.changed.Signal()
}

func (t *Tally) do(j job) {
	if !j.sampled {
		t.add(j.text, false)
		return
	}
	t.samples = append(t.samples, t.c.sample(j.text))
	if len(t.samples) >= maxSamples {
		t.samples = fold(t.samples)
	}
}

// add counts the pieces of the text so far that can no longer grow.
func (t *Tally) add(text []byte, final bool) {
	t.carry = append(t.carry, text...)
	whole := len(t.carry)
	if !final { // a rune may be cut at the end
		whole -= partial(t.carry)
	}
	if !utf8.Valid(t.carry[:whole]) {
		rest := slices.Clone(t.carry[whole:])
		t.carry = valid(t.carry[:whole])
		whole = len(t.carry)
		t.carry = append(t.carry, rest...)
	}
	n, used := t.c.count(t.carry[:whole], final)
	if used == 0 && whole >= maxCarry {
		n, used = t.c.all(t.carry[:whole]), whole
		t.cut = true
	}
	t.exact += int64(n)
	t.carry = append(t.carry[:0], t.carry[used:]...)
}

// partial is how many bytes at the end are the beginning of a rune.
func partial(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Total may be called once, after the last Write.
func (t *Tally) Total() Total {
	t.mu.Lock()
	for t.running {
		t.changed.Wait()
	}
	t.mu.Unlock()
	_ = panics.Again(t.defect)
	t.add(t.job, true)
	total := Total{N: t.exact}
	if t.cut {
		total.Margin = 0.001
	}
	if rest := t.seen - ExactLimit; rest > 0 {
		if window := t.sample.last(); len(window) > 0 {
			t.samples = append(t.samples, t.c.sample(window))
		}
		total = total.plus(estimate(t.samples, rest, float64(t.exact)/ExactLimit))
	}
	return total
}

// plus is the total of two texts.
func (t Total) plus(o Total) Total {
	sum := Total{N: t.N + o.N}
	if sum.N > 0 {
		sum.Margin = min(1, (float64(t.N)*t.Margin+float64(o.N)*o.Margin)/float64(sum.N))
	}
	return sum
}
