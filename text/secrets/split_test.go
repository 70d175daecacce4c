package secrets

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestSplitMasksEachStream lets a second stream write in the middle of a text, in random places. Without these lines
// the masked text must be that of the text alone. The control masks both as one text.
func TestSplitMasksEachStream(t *testing.T) {
	m, r := New(), rand.New(rand.NewPCG(1, 2)) //nolint:gosec // random tests
	const other = "\x01 a line of the other stream\n"
	control := 0
	for range 300 {
		var text strings.Builder
		for _, s := range corpus.Secrets(r.Uint64N(1000)) {
			if r.IntN(4) == 0 {
				text.WriteString(s.Line + "\n")
			}
		}
		whole := text.String()
		want, _ := m.String(whole)
		second := r.IntN(2) == 0
		s := m.Split()
		var merged []byte
		for rest := whole; rest != ""; {
			n := 1 + r.IntN(min(len(rest), 200))
			s.Add(n, second)
			s.Add(len(other), !second)
			merged = append(append(merged, rest[:n]...), other...)
			rest = rest[n:]
		}
		got := streamed(s.Next, string(merged), func(left int) int { return min(left, 1+r.IntN(4000)) })
		expect.MustEqual(t, unnamed(strings.ReplaceAll(got, other, "")), unnamed(want))
		if all, _ := m.String(string(merged)); strings.ReplaceAll(all, other, "") != want {
			control++
		}
	}
	if control == 0 {
		t.Error("one scan of both streams would have been enough")
	}
}

// unnamed makes all masks alike: what a mask says depends a little on where the text is cut.
func unnamed(s string) string {
	return regexp.MustCompile(`\[masked[^\]]*\]`).ReplaceAllString(s, "[masked]")
}

// TestSplitIsBounded checks that a stream with an unfinished line does not hold back the other one without end.
func TestSplitIsBounded(t *testing.T) {
	s := New().Split()
	s.Add(5, false)
	text := []byte("begun")
	line := strings.Repeat("y", 1023) + "\n"
	returned := 0
	for range 100 {
		s.Add(len(line), true)
		text = append(text, line...)
		n, _ := s.Next(text, false)
		returned += n
		if text = text[n:]; len(text) > maxSplit {
			t.Fatalf("%d bytes held back", len(text))
		}
	}
	if n, _ := s.Next(text, true); n != len(text) || returned+n != 5+100*len(line) {
		t.Errorf("%d of %d bytes returned", returned+n, 5+100*len(line))
	}
}

// TestSplitFault checks that a panic of the search masks all of both streams.
func TestSplitFault(t *testing.T) {
	s := (&Masker{}).Split()
	s.Add(4, false)
	s.Add(4, true)
	if n, out := s.Next([]byte("one\ntwo\n"), true); n != 8 || string(out) != Unsearched+"\n"+Unsearched+"\n" {
		t.Errorf("%d: %q", n, out)
	}
}
