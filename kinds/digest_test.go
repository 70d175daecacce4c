package kinds

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

var update = flag.Bool("update", false, "write the goldens")

// digestAs starts a digest that takes the text for a kind, whatever Sniff says.
func digestAs(k content.Kind, text []byte) *Digest {
	return &Digest{kind: k, summarizer: Of(k).Summarizer("", text[:min(len(text), content.SniffSize)])}
}

// summarize summarises a text written in one piece.
func summarize(name string, text []byte) digest.Summary {
	d := New(name)
	_, _ = d.Write(text)
	return d.Close()
}

// show is a summary as text, for goldens.
func show(s digest.Summary) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: %s", s.Kind)
	if s.Media != "" {
		fmt.Fprintf(&b, " (%s)", s.Media)
	}
	fmt.Fprintf(&b, "\nrecords %d, matches %d, files %d\n", s.Records, s.Matches, s.Files)
	if s.Cut != nil {
		fmt.Fprintf(&b, "cut: %s at %d, %s at %q\n", s.Cut.State, s.Cut.Offset, s.Cut.Inside, s.Cut.Pointer)
	}
	for _, part := range []struct {
		name  string
		lines []string
	}{{"total", s.Total}, {"says", s.Says}, {"shapes", s.Shapes}, {"body", s.Body}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "-- %s\n", part.name)
		}
		for _, l := range part.lines {
			b.WriteString(l + "\n")
		}
	}
	return strings.ReplaceAll(b.String(), "\x1b", "<ESC>")
}

func TestGolden(t *testing.T) {
	for name, text := range digesttest.Cases(t) {
		t.Run(name, func(t *testing.T) {
			got := show(summarize(name, text))
			path := filepath.Join("testdata", "golden", name+".golden")
			if *update {
				expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				expect.Must(t, os.WriteFile(path, []byte(got), 0o644))
				return
			}
			want, err := os.ReadFile(path)
			expect.Must(t, err)
			expect.Same(t, got, string(want), "(-golden +got, go test -update to accept)")
		})
	}
}

// TestPieces: where a text is cut into pieces changes nothing.
func TestPieces(t *testing.T) {
	promise.WithoutRace(t)
	for name, text := range digesttest.Cases(t) {
		text := text[:min(len(text), 200_000)]
		t.Run(name, func(t *testing.T) {
			want := summarize(name, text)
			r := rand.New(rand.NewPCG(1, uint64(len(text))))
			for _, most := range []int{1, 7, 300, 70_000} {
				d := New(name)
				for p := text; len(p) > 0; {
					n := min(1+r.IntN(most), len(p))
					piece := append([]byte(nil), p[:n]...)
					_, _ = d.Write(piece)
					clear(piece) // nothing may be kept of it
					p = p[n:]
				}
				expect.MustSame(t, d.Close(), want, "pieces up to %d bytes (-one +many)", most)
			}
		})
	}
}

// kinds of texts, written by rapid: more of what is odd than any case has.
var kinds = []content.Kind{
	content.JSON, content.NDJSON, content.Diff, content.Log, content.Table, content.Markdown, content.Text, content.Binary,
	content.YAML, content.Template, content.XML, content.JUnit, content.TOML, content.INI, content.Properties, content.Env,
}

func TestPiecesAny(t *testing.T) {
	scraps := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"`, `\`, "\n", "\r\n", " ", "\t", "1", "-2.5e3", "true", "null", "é", "\xff", `"a":`, `{"file":"x"}`,
		"@@ -1,2 +1,2 @@\n", "@@@ -1 -1 +1 @@@\n", "--- a/x\n", "+++ b/x\n", "diff --git a/x b/x\n", "+", "-", "ERROR ", "2026-11-20T10:00:00Z ", "panic: x\n", "goroutine 1 [running]:\n",
		"Traceback (most recent call last):\n", "\tat a.b(C.java:1)\n", "# x\n", "===\n", "```\n", "word ", `""`, ";", "\x1b[31m",
		"a: ", "- ", "---\n", "&b ", "*b", "<a>", "</a>", "<testcase name='t'>", "<failure/>", "[t]\n", "k=v\n", "k=\"\n", "\\\n"})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(scraps, 0, 80).Draw(t, "text"), ""))
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		one := digestAs(k, text)
		_, _ = one.Write(text)
		many := digestAs(k, text)
		// The start of a table comes whole, as Digest hands it on.
		first := min(len(text), 3)
		_, _ = many.Write(text[:first])
		for i := first; i < len(text); i++ {
			_, _ = many.Write(text[i : i+1])
		}
		expect.MustSame(t, many.Close(), one.Close(), "%s (-one +many)", k)
	})
}

// TestPromises: what Summary says of its lines holds, and the least shape is small.
func TestPromises(t *testing.T) {
	counter := tokens.New(tokens.O200k)
	for name, text := range digesttest.Cases(t) {
		s := summarize(name, text)
		promises(t, s)
		if len(s.Shapes) > 0 {
			least := s.Shapes[len(s.Shapes)-1]
			if n := counter.Count(least); n >= 25 {
				t.Errorf("%s: the least shape is %d tokens: %s", name, n, least)
			}
		}
	}
}

func promises(t testing.TB, s digest.Summary) {
	t.Helper()
	digesttest.Promises(t, s)
	for i := 1; i < len(s.Shapes); i++ {
		if shape.Weight(s.Shapes[i]) >= shape.Weight(s.Shapes[i-1]) {
			t.Errorf("shape %d is no smaller than the one before:\n%s\n%s", i, s.Shapes[i-1], s.Shapes[i])
		}
	}
}
