package tokens

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// texts returns the texts to estimate: each kind alone, and texts whose parts differ.
func texts() map[string][]byte {
	all := map[string][]byte{
		"novel": corpus.WarAndPeace(), "json": corpus.JSON5MB(), "minified": corpus.JSON1MBMinified(), "log": corpus.PanicLog(), "csv": corpus.CSV20k(), "cjk": corpus.CJK(), "diff": corpus.WarAndPeaceDiff(),
		"base64": base64.StdEncoding.AppendEncode(nil, corpus.Random(300_000)),
	}
	all["mixed"] = parts(all, 100_000, 400_000)
	all["changing"] = parts(all, 3<<20, 3<<20)
	// In each 8 KiB, the size of the first blocks, one window's length is of another kind.
	for at := 0; at+windowEvery <= len(all["novel"]); at += windowEvery {
		all["aligned"] = append(
			append(all["aligned"], all["base64"][at%100_000:][:windowSize+windowSlack]...),
			all["novel"][at+windowSize+windowSlack:at+windowEvery]...,
		)
	}
	return all
}

// parts returns size bytes of some kinds, which alternate every length bytes.
func parts(kinds map[string][]byte, length, size int) (mixed []byte) {
	names := []string{"novel", "json", "cjk", "base64", "log", "csv"}
	for at := 0; len(mixed) < size*len(names); at += length {
		for _, name := range names {
			mixed = append(mixed, repeat(kinds[name], at, length)...)
		}
	}
	return mixed
}

// repeat returns length bytes of a text from an offset on; at its end the text starts again.
func repeat(text []byte, at, length int) []byte {
	at %= len(text)
	return bytes.Repeat(text, 2+length/len(text))[at : at+length]
}

// A stream repeats a text, and the second text, if any, from the middle on.
type stream struct {
	text, second []byte
	size         int
}

func (s stream) halves() [][]byte {
	if s.second == nil {
		return [][]byte{s.text}
	}
	return [][]byte{s.text, s.second}
}

// ratio returns the stream's tokens per byte.
func (s stream) ratio(c *Counter) (ratio float64) {
	halves := s.halves()
	for _, half := range halves {
		ratio += float64(c.countAll(half)) / float64(len(half)) / float64(len(halves))
	}
	return ratio
}

func (s stream) write(w func(p []byte)) {
	halves := s.halves()
	for _, half := range halves {
		for left := s.size / len(halves); left > 0; {
			p := half[:min(left, len(half))]
			w(p)
			left -= len(p)
		}
	}
}

// estimates estimates a stream after headSize bytes of the same, with other windows each time. It returns each error,
// and how often the estimate was within its interval.
func estimates(c *Counter, text stream, times int, r *rand.Rand) (off []float64, held int) {
	ratio := text.ratio(c)
	for range times {
		var e samples
		s := sampler{seed: r.Uint64()}
		text.write(func(p []byte) {
			s.write(p, func(w window) { e.add(c.sample(w.text), w.of) })
		})
		s.flush(func(w window) { e.add(c.sample(w.text), w.of) })
		total := Total{N: int64(ratio * headSize)}.plus(e.estimate(int64(text.size), ratio))
		want := ratio * float64(headSize+text.size)
		o := math.Abs(float64(total.N)-want) / want
		if o <= total.Margin {
			held++
		}
		off = append(off, o)
	}
	return off, held
}

// Estimates are within their interval at least 95 times of 100, and off by at most 1 % as often, for every kind of
// text: as long as ExactLimit, twice as long, and so long that windows are rare.
func TestEstimatesHoldTheirIntervals(t *testing.T) {
	promise.OrdinaryRun(t)
	c := New(O200k)
	r := rand.New(rand.NewPCG(17, 18))
	var all []float64
	within := 0
	kinds := texts()
	streams := map[string]stream{"halves": {kinds["novel"], kinds["base64"], 200 << 20}}
	for name, text := range kinds {
		for _, size := range []int{ExactLimit, 2 * ExactLimit} {
			text := text[:min(size, len(text))]
			whole := (size + len(text) - 1) / len(text) * len(text) // its ratio is then that of the text
			streams[fmt.Sprintf("%s, %d MiB", name, size>>20)] = stream{text: text, size: whole}
		}
	}
	for _, name := range []string{"json", "log", "mixed", "changing", "aligned"} {
		streams[name+", 200 MiB"] = stream{text: kinds[name], size: 200 << 20}
	}
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		times := 20
		if streams[name].size > 3*ExactLimit {
			times = 10
		}
		off, held := estimates(c, streams[name], times, r)
		slices.Sort(off)
		p95 := off[(times*95-1)/100]
		t.Logf("%s: p95 %.2f %%, %d of %d within", name, 100*p95, held, times)
		most := 0.01
		if strings.HasPrefix(name, "aligned") { // no text of the world has windows for its unit; its interval is wider
			most = 0.02
		}
		if held < times*9/10 || p95 > most {
			t.Errorf("%s: p95 %.2f %%, %d of %d within", name, 100*p95, held, times)
		}
		all = append(all, off...)
		within += held
	}
	if within*100 < 95*len(all) {
		t.Errorf("%d of %d within", within, len(all))
	}
}

// Each block has one window, which begins within it, however the stream is split into writes; the offsets differ
// between seeds, not between runs.
func TestWindowsAreWhereTheSeedPutsThem(t *testing.T) {
	const size = 80 << 20
	places := func(seed uint64, step int) (starts []int64) {
		s := sampler{seed: seed}
		next := int64(0)            // where the next block begins
		text := make([]byte, 8<<10) // its bytes tell where they are, in steps of 8
		for at := 0; at < size; at += len(text) {
			for i := 0; i < len(text); i += 8 {
				binary.LittleEndian.PutUint64(text[i:], uint64(at+i)/8)
			}
			for p := range slices.Chunk(text, step) {
				s.write(p, func(w window) {
					aligned := 8 - w.start%8
					told := int64(binary.LittleEndian.Uint64(w.text[aligned:]))*8 - aligned
					if len(w.text) != windowSize+windowSlack || told != w.start || w.start < next || w.start >= next+w.of ||
						w.of != max(windowEvery, (headSize+next)/windowShare) {
						t.Fatalf("%d bytes at %d, said to be at %d, for %d bytes at %d", len(w.text), told, w.start, w.of, next)
					}
					next += w.of
					starts = append(starts, w.start)
				})
			}
		}
		if next < size-2*max(windowEvery, size/windowShare) {
			t.Fatalf("no window from %d of %d on", next, size)
		}
		return starts
	}
	first := places(1, 8<<10)
	expect.EqualList(t, first, places(1, 777), "other windows of the same stream")
	if other := places(2, 8<<10); slices.Equal(first, other) {
		t.Error("the same windows for another seed")
	}
}

// Two windows give the same result as one twice as long: their boundaries cause no error on average.
func TestASampleIsNotCutAtItsBorders(t *testing.T) {
	c := New(O200k)
	text := bytes.Repeat([]byte("hello, 数据文件 wonderful world 12345\n"), 100)
	exact := float64(c.countAll(text)) / float64(len(text))
	var sum sample
	for i := range 200 {
		s := c.sample(text[i : i+windowSize+windowSlack])
		sum.bytes += s.bytes
		sum.tokens += s.tokens
	}
	if got := sum.tokens / sum.bytes; math.Abs(got-exact) > 0.002*exact {
		t.Errorf("%f tokens a byte, want %f", got, exact)
	}
}
