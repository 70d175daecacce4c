package tokens

import (
	"math"
	"math/rand/v2"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// The text after the first headSize bytes of a stream is estimated from windows (samples of the text) of windowSize
// bytes, one at a random offset of each block. Windows are small and many, because neighbouring bytes resemble each
// other. A block has windowEvery bytes, or 1/windowShare of the stream so far if that is more. So the number of windows
// grows with the logarithm of the stream's length: 2,000 at 16 MiB, 15,000 (8 MB of text) at 1 GiB.
const (
	windowEvery = 8 << 10
	windowShare = 3072
	windowSize  = 512
	windowSlack = 64
)

// sampler reads windows from the stream after its first headSize bytes. The zero value is ready to use. The seed
// determines the offsets of the windows, so that equal texts have equal estimates. Only an author who computes the seed
// could make a text evade the windows.
type sampler struct {
	seed      uint64
	rarely    int64 // factor of the size of blocks; 0 means 1
	random    *rand.Rand
	at        int64 // bytes seen so far
	from, end int64 // the current block
	open      []window
}

// window is a sample of the text. It begins anywhere in its block and may end in the next block, so that every offset
// is sampled equally often.
type window struct {
	text  []byte
	start int64
	of    int64 // length of the block it represents
}

// write reads the next bytes of the stream, and calls take for each window that is complete.
func (s *sampler) write(p []byte, take func(w window)) {
	for len(p) > 0 {
		if s.at == s.end {
			s.beginBlock()
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

// beginBlock starts the next block and opens its window.
func (s *sampler) beginBlock() {
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(s.seed, 1))
	}
	size := max(windowEvery*max(1, s.rarely), (headSize+s.end)/windowShare)
	s.from, s.end = s.end, s.end+size
	s.open = append(s.open, window{start: s.from + s.random.Int64N(size), of: size})
}

// fill appends the part of p that belongs to the window; at is the offset of p in the stream.
func (w *window) fill(p []byte, at int64) {
	from := max(w.start+int64(len(w.text))-at, 0)
	to := min(w.start+windowSize+windowSlack-at, int64(len(p)))
	if from < to {
		w.text = append(w.text, p[from:to]...)
	}
}

// flush calls take for each window that the end of the stream truncated.
func (s *sampler) flush(take func(w window)) {
	for _, w := range s.open {
		if len(w.text) > 0 {
			w.of = min(w.of, s.at-s.from)
			take(w)
		}
	}
}

// sample is the number of bytes and tokens counted in one window.
type sample struct {
	bytes, tokens float64
}

// sample counts a window from the end of its first piece to the end of the piece that crosses windowSize. Both
// boundaries are random: a piece is as likely to be cut by the first boundary, and then not counted, as by the second
// boundary, and then counted whole. So the average error is zero.
func (c *Counter) sample(window []byte) sample {
	d := c.acquire()
	defer c.release(d)
	text := runes.TrimStart(window)
	text = toValidUTF8(text[:runes.Complete(text)])
	if len(text) == 0 {
		return sample{}
	}
	from := c.piece(text)
	if from == len(text) { // one piece, longer than the window
		return sample{float64(len(text)), float64(d.countPiece(text, 0, len(text)))}
	}
	end, tokens := from, 0
	for end < min(windowSize, len(text)) {
		n := c.piece(text[end:])
		tokens += d.countPiece(text, end, n)
		end += n
	}
	return sample{float64(end - from), float64(tokens)}
}

// samples accumulates the samples of a stream in constant memory. Each sample is weighted by the length of its block.
type samples struct {
	n    int
	sum  sample
	last sample
	// Sums of products of the differences between neighbouring samples, in tokens and bytes.
	tokens2, cross, bytes2 float64
}

// add adds the next sample of the stream; of is the length of its block.
func (e *samples) add(s sample, of int64) {
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

// estimate returns the token count of a text of size bytes. The margin is 2 standard errors of the ratio (tokens per
// byte), plus 0.4 %. The standard error is computed from differences between neighbouring samples, which have twice
// the variance of one sample, so that slow changes across blocks do not count as errors. Without samples, estimate
// uses before, the ratio of the text before.
func (e *samples) estimate(size int64, before float64) Total {
	if e.sum.bytes == 0 || e.sum.tokens == 0 { // the text is shorter than a window
		return Total{N: int64(math.Round(before * float64(size))), Margin: 1}
	}
	ratio := e.sum.tokens / e.sum.bytes
	se := 1.0 // a single sample has no variance
	if e.n > 1 {
		squares := max(0, e.tokens2-2*ratio*e.cross+ratio*ratio*e.bytes2)
		se = math.Sqrt(squares/2*float64(e.n)/float64(e.n-1)) / e.sum.tokens
	}
	return Total{N: int64(math.Round(ratio * float64(size))), Margin: 2*se + 0.004}
}

// ExactLimit is the number of bytes up to which a stream is counted exactly. A longer one is estimated from samples.
const ExactLimit = 16 << 20
