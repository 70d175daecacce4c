package tokens

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// texts are what is estimated.
func texts() map[string][]byte {
	all := map[string][]byte{
		"novel": corpus.WarAndPeace(), "json": corpus.JSON5MB(), "minified": corpus.JSON1MBMinified(), "log": corpus.PanicLog(), "csv": corpus.CSV20k(), "cjk": corpus.CJK(), "diff": corpus.WarAndPeaceDiff(),
	}
	var mixed []byte
	for _, name := range []string{"novel", "json", "cjk", "log", "csv"} { // a change of kind every 100 kB
		for part := range slices.Chunk(all[name][:400_000], 100_000) {
			mixed = append(mixed, part...)
		}
	}
	all["mixed"] = mixed
	return all
}

// estimates estimates `times` times a text of `size` bytes behind ExactLimit bytes of the same: how far off each time, and how often within its interval.
func estimates(c *Counter, text []byte, size, times int, r *rand.Rand) (off []float64, held int) {
	text = bytes.Repeat(text, 1+size/len(text))[:size]
	ratio := float64(c.all(text)) / float64(len(text))
	exact := int64(ratio * ExactLimit)
	for range times {
		var samples []sample
		s := sampler{random: rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))}
		s.place()
		s.write(text, func(window []byte) { samples = append(samples, c.sample(window)) })
		total := Total{N: exact}.plus(estimate(samples, int64(size), ratio))
		want := ratio * float64(ExactLimit+size)
		o := math.Abs(float64(total.N)-want) / want
		if o <= total.Margin {
			held++
		}
		off = append(off, o)
	}
	return off, held
}

// Estimates are within their interval at least 95 times of 100, and off by at most 1 % as often, for every kind of text.
func TestEstimatesHoldTheirIntervals(t *testing.T) {
	if testing.Short() { // no second goroutine is in it
		t.Skip("measured in the ordinary run: skipped with -short")
	}
	c := New(O200k)
	r := rand.New(rand.NewPCG(17, 18))
	const times = 20
	var all []float64
	within := 0
	kinds := texts()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		text := kinds[name]
		for _, size := range []int{1 << 20, 8 << 20} {
			off, held := estimates(c, text, size, times, r)
			slices.Sort(off)
			t.Logf("%s, %d MiB above: p95 %.2f %%, %d of %d within", name, size>>20, 100*off[times*95/100-1], held, times)
			if held < times*9/10 || off[times*95/100-1] > 0.01 {
				t.Errorf("%s, %d MiB above: p95 %.2f %%, %d of %d within", name, size>>20, 100*off[times*95/100-1], held, times)
			}
			all = append(all, off...)
			within += held
		}
	}
	if within*100 < 95*len(all) {
		t.Errorf("%d of %d within", within, len(all))
	}
}

// What two windows tell is what one of both tells, and where it begins or ends costs nothing on average.
func TestASampleIsNotCutAtItsBorders(t *testing.T) {
	c := New(O200k)
	text := bytes.Repeat([]byte("hello, 数据文件 wonderful world 12345\n"), 100)
	exact := float64(c.all(text)) / float64(len(text))
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
