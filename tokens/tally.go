package tokens

import (
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/panics"
)

// Total is a number of tokens and how sure it is.
type Total struct {
	N         int64
	Margin    float64 // 0: exact; 0.01: within 1 %
	Estimated bool    // by a factor, see [Model]
}

// String is the number as it is told: exact, or as "~24600 ±1 %" from samples and "≈8400 ±35 %" by a model's factor. An estimate
// has three digits, and more where the margin, which is told in steps of 0.1 %, is narrower than what they would leave out.
func (t Total) String() string {
	if t.Margin <= 0 {
		return strconv.FormatInt(t.N, 10)
	}
	percent := max(math.Ceil(t.Margin*1000)/10, 0.1)
	unit := int64(1)
	for t.N/unit >= 1000 {
		unit *= 10
	}
	for unit > 1 && float64(unit) > float64(t.N)*percent/100 {
		unit /= 10
	}
	sign := "~"
	if t.Estimated {
		sign = "≈"
	}
	return sign + strconv.FormatInt((t.N+unit/2)/unit*unit, 10) + " ±" + strconv.FormatFloat(percent, 'g', -1, 64) + " %"
}

// ExactLimit is how much of a stream is counted exactly, in bytes. What is above it is estimated from samples.
const ExactLimit = 16 << 20

// maxCarry is how long a piece without end may grow before it is cut, in
// bytes. A text that has such a piece is not counted exactly.
const maxCarry = 1 << 20

// A long text is counted by a goroutine of its own, in jobs of jobSize bytes. A writer may always be ownAhead bytes
// ahead of it, and sharedAhead more between all writers, so that a fast one seldom waits and many hold no more.
const (
	jobSize     = 64 << 10
	ownAhead    = 256 << 10
	sharedAhead = 2 << 20
)

// shared is how much of sharedAhead is taken, in bytes.
var shared atomic.Int64

// Tally counts a stream: exact up to [ExactLimit] bytes, estimated from samples above. From 64 KiB on it counts beside
// the writer, which waits only where it is 256 KiB ahead, and all writers together 2 MiB more. It holds at most about
// 2 MiB beside that, and nothing runs where nothing was written for a while, so that it may be dropped at any time. Its
// methods are not safe for concurrent use.
type Tally struct {
	c      *Counter
	seen   int64
	job    []byte // of the first ExactLimit bytes, what is not with the counting yet
	sample sampler

	mu       sync.Mutex
	changed  sync.Cond
	jobs     []job
	waiting  int64 // bytes of jobs
	borrowed int64 // of sharedAhead
	running  bool
	spare    [][]byte

	// Of whom counts; when nobody does, of the caller:
	exact    int64  // tokens of the first ExactLimit bytes
	carry    []byte // what may still grow
	cut      bool   // a piece was cut, so exact is not
	evidence evidence
	defect   error // a panic of the goroutine that counts
}

// job is a text to be counted.
type job struct {
	text []byte
	of   int64 // it is a window's, of a block of this length; 0: it is not
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
		t.sample.seed = uint64(crc32.Update(uint32(t.sample.seed), castagnoli(), head)) // of all that is counted exactly
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
	t.sample.write(p, func(w window) { t.hand(job{text: w.text, of: w.of}) })
	return n, nil
}

// castagnoli takes 0.2 ms to make: not every process counts a stream.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

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
	for !t.room(int64(len(j.text))) {
		t.changed.Wait()
	}
	t.jobs = append(t.jobs, j)
	t.waiting += int64(len(j.text))
	if !t.running {
		t.running = true
		go t.work()
	}
}

// room says whether n bytes more may wait, and borrows what is missing.
func (t *Tally) room(n int64) bool {
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
		t.done(j)
		t.changed.Signal()
	}
	t.jobs, t.running = nil, false
	t.changed.Signal()
}

// done takes the first job out, and gives back what was borrowed for it.
func (t *Tally) done(j job) {
	t.jobs[0] = job{}
	t.jobs = t.jobs[1:]
	t.waiting -= int64(len(j.text))
	if back := t.borrowed - max(0, t.waiting-ownAhead); back > 0 {
		t.borrowed -= back
		shared.Add(-back)
	}
	if cap(j.text) >= jobSize && len(t.spare) < ownAhead/jobSize {
		t.spare = append(t.spare, j.text[:0])
	}
}

func (t *Tally) do(j job) {
	if j.of > 0 {
		t.evidence.add(t.c.sample(j.text), j.of)
		return
	}
	t.add(j.text, false)
}

// add counts the pieces of the text so far that can no longer grow.
func (t *Tally) add(text []byte, final bool) {
	if len(t.carry) > 0 {
		t.carry = append(t.carry, text...)
		text = t.carry
	}
	whole := len(text)
	if !final { // a rune may be cut at the end
		whole -= partial(text)
	}
	rest := slices.Clone(text[whole:]) // few bytes: what is valid may grow over them
	text = valid(text[:whole])
	n, used := t.c.count(text, final)
	if used == 0 && len(text) >= maxCarry {
		n, used = t.c.all(text), len(text)
		t.cut = true
	}
	t.exact += int64(n)
	t.carry = append(append(t.carry[:0], text[used:]...), rest...)
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
		t.sample.last(func(w window) { t.evidence.add(t.c.sample(w.text), w.of) })
		total = total.plus(t.evidence.estimate(rest, float64(t.exact)/ExactLimit))
	}
	return total.of(t.c.model)
}

// of is the total of a model, by that of its encoding. It is as unsure as both.
func (t Total) of(m Model) Total {
	if m.Estimated() {
		t = Total{N: int64(math.Ceil(m.Factor * float64(t.N))), Margin: min(1, m.Error+t.Margin*(1+m.Error)), Estimated: true}
	}
	return t
}

// Recount is what a total counted for one model is for another, without the text; not ok where their vocabularies are
// others, so that nothing is known.
func Recount(t Total, from, to Model) (_ Total, ok bool) {
	switch {
	case from == to:
		return t, true
	case from.Encoding != to.Encoding:
		return Total{}, false
	case from.Estimated():
		t = Total{N: int64(float64(t.N) / from.Factor), Margin: max(0, t.Margin-from.Error) / (1 + from.Error)}
	}
	return t.of(to), true
}

// plus is the total of two texts.
func (t Total) plus(o Total) Total {
	sum := Total{N: t.N + o.N}
	if sum.N > 0 {
		sum.Margin = min(1, (float64(t.N)*t.Margin+float64(o.N)*o.Margin)/float64(sum.N))
	}
	return sum
}
