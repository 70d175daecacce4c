package tokens

import (
	"math"
	"math/rand/v2"
)

// Of each windowEvery bytes, windowSize are counted, from a random place on. More and smaller windows than one of
// 4 KiB in 64 KiB, at the same cost: neighbouring bytes tell much the same. Slack is what is taken beyond, so that the
// last piece of a window is whole.
const (
	windowEvery = 16 << 10
	windowSize  = 1 << 10
	windowSlack = 64
)

// sampler takes the windows of a stream. The zero value is one at the beginning.
type sampler struct {
	random *rand.Rand
	block  int64 // bytes into the block of windowEvery
	start  int64 // where the block's window starts
	window []byte
}

// write passes each window to take when it is full.
func (s *sampler) write(p []byte, take func(window []byte)) {
	if s.random == nil && len(p) > 0 {
		s.random = rand.New(rand.NewPCG(1, 1)) // the same text, the same estimate
		s.place()
	}
	for len(p) > 0 {
		step := p[:min(int64(len(p)), windowEvery-s.block)]
		from, to := s.start-s.block, s.start+windowSize+windowSlack-s.block
		if from < int64(len(step)) && to > 0 {
			s.window = append(s.window, step[max(from, 0):min(to, int64(len(step)))]...)
			if to <= int64(len(step)) {
				take(s.window)
				s.window = s.window[:0]
			}
		}
		s.block += int64(len(step))
		p = p[len(step):]
		if s.block == windowEvery {
			s.block = 0
			s.place()
		}
	}
}

func (s *sampler) place() { s.start = s.random.Int64N(windowEvery - windowSize - windowSlack) }

// last is the window that the end of the stream cut.
func (s *sampler) last() []byte { return s.window }

// sample is what a window tells.
type sample struct {
	bytes, tokens float64
}

// sample counts a window from the end of its first piece to the end of the one that crosses windowSize: where either
// border is random, a piece is as likely to be crossed by the one as by the other, and is left out by the one and
// counted whole by the other. So no border costs anything on average.
func (c *Counter) sample(window []byte) sample {
	d := c.desk()
	defer c.desks.Put(d)
	text := window[leading(window):]
	text = valid(text[:len(text)-partial(text)])
	if len(text) == 0 {
		return sample{}
	}
	from := c.piece(text)
	if from == len(text) { // one piece, longer than the window
		return sample{float64(len(text)), float64(d.next(text, len(text)))}
	}
	end, tokens := from, 0
	for end < min(windowSize, len(text)) {
		n := c.piece(text[end:])
		tokens += d.next(text[end:], n)
		end += n
	}
	return sample{float64(end - from), float64(tokens)}
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

// maxSamples bounds the memory of samples: 512 KiB at 512 MiB of text; then pairs are joined.
const maxSamples = 1 << 15

func fold(samples []sample) []sample {
	half := samples[:0]
	for i := 0; i+1 < len(samples); i += 2 {
		half = append(half, sample{samples[i].bytes + samples[i+1].bytes, samples[i].tokens + samples[i+1].tokens})
	}
	return half
}

// estimate is the tokens of a text of size bytes, of which there are samples. The interval is 2 standard errors of the
// ratio, plus 0.4 %. Where there are few samples, before is the ratio of the text before it.
func estimate(samples []sample, size int64, before float64) Total {
	var bytes, tokens float64
	for _, s := range samples {
		bytes += s.bytes
		tokens += s.tokens
	}
	if bytes == 0 || tokens == 0 { // less than a window
		return Total{N: int64(math.Round(before * float64(size))), Margin: 1}
	}
	ratio := tokens / bytes
	var squares float64
	for _, s := range samples {
		d := s.tokens - ratio*s.bytes
		squares += d * d
	}
	k := float64(len(samples))
	se := 1.0 // one sample says nothing of its own spread
	if k > 1 {
		se = math.Sqrt(squares/(k-1)/k) / (bytes / k) / ratio
	}
	return Total{N: int64(math.Round(ratio * float64(size))), Margin: 2*se + 0.004}
}
