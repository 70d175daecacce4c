package tokens

import (
	"math"
	"math/rand/v2"
	"slices"
	"unicode/utf8"
)

// Total is a number of tokens and how sure it is.
type Total struct {
	N      int64
	Margin float64 // 0: exact; 0.01: within 1 %
}

// ExactLimit is how much of a stream is counted exactly, in bytes. Above it
// one window of windowSize in every windowEvery bytes is counted.
const (
	ExactLimit  = 4 << 20
	windowEvery = 64 << 10
	windowSize  = 4 << 10
)

// maxCarry is how long a piece without end may grow before it is cut, in
// bytes. A text that has such a piece is not counted exactly.
const maxCarry = 1 << 20

// writeStep is how much of a long Write is taken at once: it bounds what is held, whatever is written in one piece.
const writeStep = 64 << 10

// Tally counts a stream: exact up to [ExactLimit] bytes, estimated from
// samples above. It holds at most about 1 MiB, and 40 MiB for a moment where a piece has no end. Not safe for concurrent use.
type Tally struct {
	c     *Counter
	seen  int64
	exact int64  // tokens of the first ExactLimit bytes
	carry []byte // what may still grow, of the first ExactLimit bytes
	cut   bool   // a piece was cut, so exact is not

	// Above ExactLimit:
	random  *rand.Rand
	block   int64 // bytes into the block of windowEvery
	start   int64 // where the block's window starts
	window  []byte
	samples []sample
}

type sample struct {
	bytes, tokens float64
}

// Tally starts counting a stream.
func (c *Counter) Tally() *Tally { return &Tally{c: c} }

// Write never fails.
func (t *Tally) Write(p []byte) (int, error) {
	n := len(p)
	if room := ExactLimit - t.seen; room > 0 {
		head := p[:min(int64(len(p)), room)]
		for piece := range slices.Chunk(head, writeStep) {
			t.carry = append(t.carry, piece...)
			t.drain(false)
		}
		t.seen += int64(len(head))
		p = p[len(head):]
	}
	t.seen += int64(len(p))
	if len(p) > 0 {
		t.sampled(p)
	}
	return n, nil
}

// drain counts the pieces of carry that can no longer grow.
func (t *Tally) drain(final bool) {
	// Below this there is little to gain, and short writes would be scanned again and again.
	if !final && len(t.carry) < 16<<10 {
		return
	}
	whole := len(t.carry)
	if !final { // a rune may be cut at the end
		whole -= partial(t.carry)
	}
	if !utf8.Valid(t.carry[:whole]) {
		// The replacement changes lengths: count up to here as one, cut after an ASCII newline or wherever it ends.
		t.exact += int64(t.c.all(t.carry[:whole]))
		t.cut = t.cut || !final
		t.carry = append(t.carry[:0], t.carry[whole:]...)
		return
	}
	n, used := t.c.count(t.carry[:whole], final)
	if used == 0 && len(t.carry) >= maxCarry {
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

// sampled takes one window at a random place of each block.
func (t *Tally) sampled(p []byte) {
	if t.random == nil {
		t.random = rand.New(rand.NewPCG(1, 1)) // the same text, the same estimate
		t.start = t.random.Int64N(windowEvery - windowSize)
	}
	for len(p) > 0 {
		step := p[:min(int64(len(p)), windowEvery-t.block)]
		from, to := t.start-t.block, t.start+windowSize-t.block
		if from < int64(len(step)) && to > 0 {
			t.window = append(t.window, step[max(from, 0):min(to, int64(len(step)))]...)
			if len(t.window) == windowSize {
				t.samples = append(t.samples, sample{windowSize, float64(t.c.all(t.window))})
				t.window = t.window[:0]
			}
		}
		t.block += int64(len(step))
		p = p[len(step):]
		if t.block == windowEvery {
			t.block, t.start = 0, t.random.Int64N(windowEvery-windowSize)
			if len(t.samples) >= maxSamples {
				t.fold()
			}
		}
	}
}

// maxSamples bounds the memory of samples: 512 KiB at 1 GiB of text; then pairs are joined.
const maxSamples = 1 << 15

func (t *Tally) fold() {
	half := t.samples[:0]
	for i := 0; i+1 < len(t.samples); i += 2 {
		half = append(half, sample{t.samples[i].bytes + t.samples[i+1].bytes, t.samples[i].tokens + t.samples[i+1].tokens})
	}
	t.samples = half
}

// Total may be called once, after the last Write.
func (t *Tally) Total() Total {
	t.drain(true)
	total := Total{N: t.exact}
	if t.cut {
		total.Margin = 0.001
	}
	rest := float64(t.seen - ExactLimit)
	if rest <= 0 {
		return total
	}
	if len(t.window) > 0 {
		t.samples = append(t.samples, sample{float64(len(t.window)), float64(t.c.all(t.window))})
	}
	if len(t.samples) == 0 { // less than a window lies above the limit
		ratio := float64(t.exact) / ExactLimit
		return Total{N: t.exact + int64(math.Round(ratio*rest)), Margin: 0.02}
	}
	var bytes, tokens float64
	for _, s := range t.samples {
		bytes += s.bytes
		tokens += s.tokens
	}
	ratio := tokens / bytes
	var squares float64
	for _, s := range t.samples {
		d := s.tokens - ratio*s.bytes
		squares += d * d
	}
	estimate := ratio * rest
	total.N += int64(math.Round(estimate))
	// The interval is 2 standard errors of the ratio, plus 0.4 % for the pieces that a window's two borders cut.
	k := float64(len(t.samples))
	se := 1.0 // one sample says nothing of its own spread
	if k > 1 {
		se = math.Sqrt(squares/(k-1)/k) / (bytes / k) / ratio
	}
	total.Margin = (2*se + 0.004) * estimate / float64(total.N)
	if t.cut {
		total.Margin += 0.001
	}
	total.Margin = min(total.Margin, 1)
	return total
}
