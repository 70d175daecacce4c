package summary

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

var update = flag.Bool("update", false, "write the goldens")

// digestAs starts a digest that takes the text for a kind, whatever Sniff says.
func digestAs(k content.Kind, text []byte) *Digest {
	return &Digest{kind: k, reader: readerOf(k, "", text[:min(len(text), content.SniffSize)])}
}

// digest summarises a text written in one piece.
func digest(name string, text []byte) Summary {
	d := New(name)
	_, _ = d.Write(text)
	return d.Close()
}

// cases are all texts that have a golden: files under testdata/cases, and the corpus.
func cases(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d cases: %v", len(paths), err)
	}
	all := map[string][]byte{
		"corpus-novel.txt":     corpus.WarAndPeace(),
		"corpus-novel.diff":    corpus.WarAndPeaceDiff(),
		"corpus-1MB.json":      corpus.JSON1MB(),
		"corpus-5MB.json":      corpus.JSON5MB(),
		"corpus-minified.json": corpus.JSON1MBMinified(),
		"corpus-panic.log":     corpus.PanicLog(),
		"corpus-20k.csv":       corpus.CSV20k(),
		"corpus-rare.ndjson":   corpus.RareKey9k(),
		"corpus-cjk.txt":       corpus.CJK(),
		"corpus-random.bin":    corpus.Random(100_000),
		"corpus-hits.ndjson":   searchHits(1200),
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(p)] = b
	}
	return all
}

// searchHits is what search writes for n hits, sorted by file.
func searchHits(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"file":"src/dir%03d/file%04d.go","line":%d,"text":"\tif err := f(%d); err != nil {"}`+"\n", i*100/n, i*1000/n, i%700+1, i)
	}
	return []byte(b.String())
}

// show is a summary as text, for goldens.
func show(s Summary) string {
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
	for name, text := range cases(t) {
		t.Run(name, func(t *testing.T) {
			got := show(digest(name, text))
			path := filepath.Join("testdata", "golden", name+".golden")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-golden +got, go test -update to accept)\n%s", diff)
			}
		})
	}
}

// TestPieces: where a text is cut into pieces changes nothing.
func TestPieces(t *testing.T) {
	for name, text := range cases(t) {
		text := text[:min(len(text), 200_000)]
		t.Run(name, func(t *testing.T) {
			want := digest(name, text)
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
				if diff := cmp.Diff(want, d.Close()); diff != "" {
					t.Fatalf("pieces up to %d bytes (-one +many)\n%s", most, diff)
				}
			}
		})
	}
}

// kinds of texts, written by rapid: more of what is odd than any case has.
var kinds = []content.Kind{content.JSON, content.NDJSON, content.Diff, content.Log, content.Table, content.Markdown, content.Text, content.Binary}

func TestPiecesAny(t *testing.T) {
	scraps := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"`, `\`, "\n", "\r\n", " ", "\t", "1", "-2.5e3", "true", "null", "é", "\xff", `"a":`, `{"file":"x"}`,
		"@@ -1,2 +1,2 @@\n", "@@@ -1 -1 +1 @@@\n", "--- a/x\n", "+++ b/x\n", "diff --git a/x b/x\n", "+", "-", "ERROR ", "2026-11-20T10:00:00Z ", "panic: x\n", "goroutine 1 [running]:\n",
		"Traceback (most recent call last):\n", "\tat a.b(C.java:1)\n", "# x\n", "===\n", "```\n", "word ", `""`, ";", "\x1b[31m"})
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
		if diff := cmp.Diff(one.Close(), many.Close()); diff != "" {
			t.Fatalf("%s (-one +many)\n%s", k, diff)
		}
	})
}

// TestPromises: what Summary says of its lines holds, and the least shape is small.
func TestPromises(t *testing.T) {
	counter := tokens.New(tokens.O200k)
	for name, text := range cases(t) {
		s := digest(name, text)
		promises(t, s)
		if len(s.Shapes) > 0 {
			least := s.Shapes[len(s.Shapes)-1]
			if n := counter.Count(least); n >= 25 {
				t.Errorf("%s: the least shape is %d tokens: %s", name, n, least)
			}
		}
	}
}

func promises(t testing.TB, s Summary) {
	t.Helper()
	for _, part := range [][]string{s.Total, s.Says, s.Shapes, s.Body} {
		for _, l := range part {
			if strings.ContainsAny(l, "\r\n") || l == "" {
				t.Errorf("not one line: %q", l)
			}
			if n := utf8.RuneCountInString(l); n > maxLine {
				t.Errorf("%d runes: %.200q", n, l)
			}
		}
	}
	for i := 1; i < len(s.Shapes); i++ {
		if weight(s.Shapes[i]) >= weight(s.Shapes[i-1]) {
			t.Errorf("shape %d is no smaller than the one before:\n%s\n%s", i, s.Shapes[i-1], s.Shapes[i])
		}
	}
	if (s.Matches < 0) && s.Files >= 0 {
		t.Errorf("files %d without matches", s.Files)
	}
}
