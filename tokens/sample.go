package tokens

import (
	"math"
	"math/rand/v2"
)

// A stream above ExactLimit is estimated from windows of windowSize bytes, one at a random place of each block. Small
// and many, as neighbouring bytes tell much the same. A block is windowEvery bytes long, and where the stream has
// become longer than windowShare of them, its share of what was seen so far: the windows grow with the logarithm of
// the stream, 3,000 at 64 MiB, 14,000 (8 MB of text) at 1 GiB, and a text of which half the bytes are in the last
// blocks is still seen in 8,000. Slack is what is taken beyond, so that the last piece of a window is whole.
const (
	windowEvery = 16 << 10
	windowShare = 4096
	windowSize  = 512
	windowSlack = 64
)

// sampler takes the windows of a stream from ExactLimit on. The zero value is one at the beginning. Where the windows
// are follows from seed, so that the same text has the same estimate, and no text can be laid out to evade them but by
// who computes its seed.
type sampler struct {
	seed      uint64
	random    *rand.Rand
	at        int64 // bytes sampled so far
	from, end int64 // the block
	open      []window
}

// window begins anywhere in its block and may end in the next: no place is seen less than others.
type window struct {
	text  []byte
	start int64
	of    int64 // the length of the block it stands for
}

// write passes each window to take when it is full.
func (s *sampler) write(p []byte, take func(w window)) {
	for len(p) > 0 {
		if s.at == s.end {
			s.next()
		}
		step := p[:min(int64(len(p)), s.end-s.at)]
		for i := range s.open {
			s.open[i].fill(step, s.at)
		}
		for len(s.open) > 0 && len(s.open[0].text) == windowSize+windowSlack {
			take(s.open[0])
			s.open = s.open[:copy(s.open, s.open[1:])]
		}
		s.at += int64(len(step))
		p = p[len(step):]
	}
}

// next begins a block.
func (s *sampler) next() {
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(s.seed, 1))
	}
	size := max(windowEvery, (ExactLimit+s.end)/windowShare)
	s.from, s.end = s.end, s.end+size
	s.open = append(s.open, window{start: s.from + s.random.Int64N(size), of: size})
}

// fill takes what is the window's of p, which is at a place of the stream.
func (w *window) fill(p []byte, at int64) {
	from := max(w.start+int64(len(w.text))-at, 0)
	to := min(w.start+windowSize+windowSlack-at, int64(len(p)))
	if from < to {
		w.text = append(w.text, p[from:to]...)
	}
}

// last passes on the windows that the end of the stream cut.
func (s *sampler) last(take func(w window)) {
	for _, w := range s.open {
		if len(w.text) > 0 {
			w.of = min(w.of, s.at-s.from)
			take(w)
		}
	}
}

// sample is what a window tells.
type sample struct {
	bytes, tokens float64
}

// sample counts a window from the end of its first piece to the end of the one that crosses windowSize: where either
// border is random, a piece is as likely to be crossed by the one as by the other, and is left out by the one and
// counted whole by the other. So no border costs anything on average.
func (c *Counter) sample(window []byte) sample {
	d := c.desk()
	defer c.leave(d)
	text := window[leading(window):]
	text = valid(text[:len(text)-partial(text)])
	if len(text) == 0 {
		return sample{}
	}
	from := c.piece(text)
	if from == len(text) { // one piece, longer than the window
		return sample{float64(len(text)), float64(d.next(text, 0, len(text)) + d.settle(text))}
	}
	end, tokens := from, 0
	for end < min(windowSize, len(text)) {
		n := c.piece(text[end:])
		tokens += d.next(text, end, n)
		end += n
	}
	return sample{float64(end - from), float64(tokens + d.settle(text))}
}

// leading is how many bytes at the beginning are the end of a rune that was cut.
func leading(b []byte) int {
	for n := range min(3, len(b)) {
		if b[n]&0xc0 != 0x80 {
			return n
		}
	}
	return 0
}

// evidence is what the samples of a stream tell together, each weighed by the length of its block. It is of one size
// however many they are.
type evidence struct {
	n    int
	sum  sample
	last sample
	// Of the differences of neighbours, in tokens and bytes: the sums of their products.
	tokens2, cross, bytes2 float64
}

// add takes the next sample of the stream, from a block of a length.
func (e *evidence) add(s sample, of int64) {
	s.bytes, s.tokens = s.bytes*float64(of), s.tokens*float64(of)
	e.sum.bytes += s.bytes
	e.sum.tokens += s.tokens
	if e.n > 0 {
		tokens, bytes := s.tokens-e.last.tokens, s.bytes-e.last.bytes
		e.tokens2 += tokens * tokens
		e.cross += tokens * bytes
		e.bytes2 += bytes * bytes
	}
	e.last = s
	e.n++
}

// estimate is the tokens of a text of size bytes. The interval is 2 standard errors of the ratio, plus 0.4 %. Each
// block has one sample, so that what blocks differ in is no error: the standard error is from the differences of
// neighbours, twice whose variance they show. Where there is no sample, before is the ratio of the text before it.
func (e *evidence) estimate(size int64, before float64) Total {
	if e.sum.bytes == 0 || e.sum.tokens == 0 { // less than a window
		return Total{N: int64(math.Round(before * float64(size))), Margin: 1}
	}
	ratio := e.sum.tokens / e.sum.bytes
	se := 1.0 // one sample says nothing of its own spread
	if e.n > 1 {
		squares := max(0, e.tokens2-2*ratio*e.cross+ratio*ratio*e.bytes2)
		se = math.Sqrt(squares/2*float64(e.n)/float64(e.n-1)) / e.sum.tokens
	}
	return Total{N: int64(math.Round(ratio * float64(size))), Margin: 2*se + 0.004}
}
