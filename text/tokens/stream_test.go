package tokens

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// cut counts a text in writes of the given sizes, in turn.
func cut(c *Counter, text []byte, sizes []byte) int64 {
	t := c.Tally()
	for i := 0; len(text) > 0; i++ {
		n := min(len(text), 1+int(sizes[i%len(sizes)]))
		t.addText(text[:n], false)
		text = text[n:]
	}
	return t.Total().N
}

func sameCut(t expect.TB, text string, sizes []byte) {
	t.Helper()
	for _, e := range []Encoding{O200k, CL100k} {
		c := New(e)
		if got, want := cut(c, []byte(text), sizes), int64(c.Count(text)); got != want {
			t.Errorf("%s: in parts %d tokens, as a whole %d: %.300q", e, got, want, text)
		}
	}
}

// A stream has the tokens of the whole text, however it is split into writes, valid or not.
func TestAStreamCountsAsTheWhole(t *testing.T) {
	for _, text := range []string{
		"\n" + strings.Repeat(" ", 40) + "\nx", "x  \n" + strings.Repeat("\t", 40) + "y", "中" + strings.Repeat("AB", 30) +
			"c", "\u02b0" + strings.Repeat("\u0301", 30) + "A",
		"it" + strings.Repeat("'s", 30), "..." + strings.Repeat("\n/", 30) + "a", strings.Repeat("\xe4\xb8", 30) +
			"\xad", strings.Repeat("=", 300), "\xf0\x9f\x91" + strings.Repeat("\x8d", 20),
	} {
		for size := range 30 {
			sameCut(t, text, []byte{byte(size)})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.String(), rapid.StringMatching(`( {1,20}|\n{1,9}|A{1,20}|中{1,9}|b{1,9})`), rapid.Map(
				rapid.SliceOfN(rapid.Byte(), 0, 9), func(b []byte) string { return string(b) },
			),
			rapid.SampledFrom([]string{"'s", "'LL", "\r\n", "/", "1", "\u0301", "ǅ", "ʰ", "...", "\t", "\u00a0", "\xe4\xb8"}),
		)).Draw(t, "parts")
		sameCut(t, strings.Join(parts, ""), rapid.SliceOfN(rapid.Byte(), 1, 5).Draw(t, "sizes"))
	})
}

func FuzzStream(f *testing.F) {
	f.Add("it's a\u0301 中文ABC \r\n   \n 1234\xff\xe4\xb8", []byte{3, 0, 9})
	f.Fuzz(func(t *testing.T, text string, sizes []byte) {
		if len(text) < 10_000 && len(sizes) > 0 {
			sameCut(t, text, sizes)
		}
	})
}

// Counting concurrently gives the same result: many jobs, short and long writes, and a Tally that is dropped.
func TestATallyBesideTheWriter(t *testing.T) {
	c := New(O200k)
	text := bytes.Join([][]byte{corpus.JSON1MB(), corpus.Random(100_000), corpus.CJK(), corpus.WarAndPeace()[:1<<20]}, nil)
	want := int64(c.Count(string(text)))
	for _, size := range []int{999, jobSize, len(text)} {
		tally := c.Tally()
		for b := text; len(b) > 0; {
			n := min(size, len(b))
			_, _ = tally.Write(b[:n])
			b = b[n:]
		}
		if got := tally.Total(); got.N != want || got.Margin != 0 {
			t.Errorf("in writes of %d: %+v, want %d", size, got, want)
		}
		_, _ = c.Tally().Write(text)
	}
}

// nothingShared fails unless all that was taken is given back, be it by tallies that other tests have dropped.
func nothingShared(t *testing.T) {
	t.Helper()
	for range 10_000 {
		if shared.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d bytes are still taken", shared.Load())
}

// Writers far ahead of the counting hold no more than they share, count correctly, and return all of it.
func TestWritersShareWhatTheyAreAhead(t *testing.T) {
	c := New(O200k)
	text := bytes.Repeat(corpus.JSON1MB(), 5)
	want := int64(c.Count(string(text)))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			tally := c.Tally()
			for p := range slices.Chunk(text, 100_000) {
				_, _ = tally.Write(p)
				if ahead := shared.Load(); ahead < 0 || ahead > sharedAhead+4*jobSize { // each may have asked and not yet given up
					t.Errorf("%d bytes are shared", ahead)
				}
			}
			if got := tally.Total(); got.N != want || got.Margin != 0 {
				t.Errorf("%+v, want %d", got, want)
			}
		})
	}
	all.Wait()
	nothingShared(t)
}

// The estimate of a stream over the limit is the same however far the counting got before, and near the exact count. A
// stream at the limit is exact.
func TestAnEstimateDependsOnTheTextAlone(t *testing.T) {
	c := New(O200k)
	text := bytes.Repeat(corpus.JSON1MB(), ExactLimit/len(corpus.JSON1MB())+1)
	text = append(text[:ExactLimit:ExactLimit], "one more"...)
	want := int64(c.Count(string(text)))
	var first Total
	for i, size := range []int{len(text), 100_000, 3000, 1 << 20} {
		tally := c.Tally()
		if i == 3 {
			tally.Estimate(1)
		}
		for p := range slices.Chunk(text, size) {
			_, _ = tally.Write(p)
			if size == 3000 { // the counting keeps up
				tally.mu.Lock()
				for tally.waiting > 2*jobSize {
					tally.changed.Wait()
				}
				tally.mu.Unlock()
			}
		}
		got := tally.Total()
		if off := math.Abs(float64(got.N-want)) / float64(want); off > got.Margin || got.Margin == 0 || got.Margin > 0.03 {
			t.Errorf("in writes of %d: %+v, want %d", size, got, want)
		}
		if i == 0 {
			first = got
		} else if got != first {
			t.Errorf("in writes of %d: %+v, before %+v", size, got, first)
		}
	}
	nothingShared(t)
	for _, size := range []int{0, headSize, headSize + 1, headSize + 1<<20} { // of binary data
		tally := c.Tally()
		tally.Estimate(16)
		part := bytes.Repeat([]byte{0}, size)
		_, _ = tally.Write(part)
		got, want := tally.Total(), float64(c.Count(string(part)))
		if math.Abs(float64(got.N)-want) > got.Margin*want || (got.Margin > 0) != (size > headSize) {
			t.Errorf("%d bytes: %+v, want %v", size, got, want)
		}
	}
}
