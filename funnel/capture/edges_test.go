package capture

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/funnel/text/texttest"
)

func TestEdgesCountAndKeepWhatSplittingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := texttest.Outputs().Draw(t, "output")
		head, tail := rapid.IntRange(1, 12).Draw(t, "head"), rapid.IntRange(1, 7).Draw(t, "tail")
		e := newEdges(head, tail)
		for rest := b; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			if n < len(rest) {
				n = runes.Complete(rest[:n])
			}
			if n == 0 {
				n = min(utf8.UTFMax, len(rest))
				n = runes.Complete(rest[:n])
			}
			_, _ = e.Write(rest[:n])
			rest = rest[n:]
		}
		e.close()
		want := texttest.Count(b)
		if e.lines != want.Lines || e.chars != want.Chars || e.longest != want.Longest || e.bytes != int64(len(b)) {
			t.Fatalf("lines %d, chars %d, longest %d, bytes %d; splitting finds %d, %d, %d, %d",
				e.lines, e.chars, e.longest, e.bytes, want.Lines, want.Chars, want.Longest, len(b))
		}
		sameLines(t, "head", e.head, want.Split[:min(head, len(want.Split))])
		sameLines(t, "tail", e.lastLines(), want.Split[max(0, len(want.Split)-tail):])
	})
}

func sameLines(t *rapid.T, what string, got []text.Line, want []string) {
	expect.MustEqual(t, len(got), len(want), "%s, lines", what)
	for i, l := range got {
		w := want[i]
		if l.Chars != int64(utf8.RuneCountInString(w)) {
			t.Fatalf("%s %d: %d chars, want %d", what, i, l.Chars, utf8.RuneCountInString(w))
		}
		if l.Whole() {
			expect.MustEqual(t, string(l.Left), w, "%s %d", what, i)
			continue
		}
		if len(l.Left)+len(l.Right) > keptLine || len(l.Left) < keptHalf || len(l.Right) < keptHalf-1 {
			t.Fatalf("%s %d: %d and %d bytes are kept of a line of %d", what, i, len(l.Left), len(l.Right), len(w))
		}
		if !strings.HasPrefix(w, string(l.Left)) || !strings.HasSuffix(w, string(l.Right)) {
			t.Fatalf("%s %d: what is kept is not of the line's ends", what, i)
		}
	}
}

func TestEdgesMemoryIsBoundedByLines(t *testing.T) {
	e := newEdges(10, 5)
	block := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		_, _ = e.Write(block)
	}
	if held := cap(e.left) + cap(e.right); held > 64<<10 {
		t.Errorf("an open line of 64 MiB holds %d bytes", held)
	}
	e.close()
	if e.lines != 1 || e.longest != 64<<20 || len(e.head) != 1 {
		t.Errorf("lines %d, longest %d, head %d", e.lines, e.longest, len(e.head))
	}
}

func TestShownLineIsClippedInItsMiddle(t *testing.T) {
	hundred := strings.Repeat("0123456789", 10_000)
	flags := strings.Repeat("🇩🇪", 200)
	cases := []struct {
		name, in string
		width    int
		json     bool
		want     string
	}{
		{"short", "plain", 80, false, "plain"},
		{"exact", strings.Repeat("x", 80), 80, false, strings.Repeat("x", 80)},
		{"100 kB", hundred, 60, false, hundred[:26] + "… 99956 chars …" + hundred[len(hundred)-18:]},
		{"hidden", "a\x1b[31mb\u202e", 80, false, `a\x1b[31mb\u{202e}`},
		{"hidden in JSON", "a\u202e", 80, true, `a\u202e`},
		{"flags are not torn", flags, 50, false, strings.Repeat("🇩🇪", 11) + "… 364 chars …" + strings.Repeat("🇩🇪", 7)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := newEdges(1, 1)
			_, _ = e.Write([]byte(c.in))
			e.close()
			expect.Same(t, e.head[0].Clip(c.width, c.json), c.want)
		})
	}
}

func TestShownLineSaysHowMuchIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ReplaceAll(rapid.StringN(0, 9000, -1).Draw(t, "line"), "\n", "")
		width := rapid.IntRange(1, 5000).Draw(t, "width")
		e := newEdges(1, 1)
		_, _ = e.Write([]byte(s + "\n"))
		e.close()
		shown := e.head[0].Clip(width, false)
		if n := utf8.RuneCountInString(shown); n > max(width, text.MinWidth) {
			t.Fatalf("%d chars shown at width %d", n, width)
		}
		if strings.Contains(shown, "\n") {
			t.Fatalf("two lines: %q", shown)
		}
	})
}

// zerosBetween finds what a look at each bit finds.
func TestZerosBetween(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	for range 100_000 {
		word := r.Uint64() & r.Uint64()
		for range r.IntN(4) {
			word &= bits.RotateLeft64(word, r.IntN(64))
		}
		longest, run := 0, -64
		for i := range 64 {
			run++
			if word>>i&1 == 1 {
				longest, run = max(longest, run-1), 0
			}
		}
		for n := range int64(66) {
			if got, want := zerosBetween(word, n), int64(longest) > n; got != want {
				t.Fatalf("over %d zeros in %064b: %v", n, word, got)
			}
		}
	}
}
