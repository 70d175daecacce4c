package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// slicePages are texts of which a page holds very different amounts, with chars that are shown as others and lines that
// imitate a page's own.
var slicePages = map[string]string{
	"words":   strings.Repeat("some words of a text that goes on and on, ", 800),
	"lines":   strings.Repeat("a line\r\n\nnext: slice {\n>next: slice {\nshowing 0-9 of 10\n", 300),
	"base64":  strings.Repeat("eW91IGRlY29kZWQgdGhpcyE", 700),
	"cjk":     strings.Repeat("战争与和平", 900) + "\n" + strings.Repeat("世", 900),
	"accents": "e" + strings.Repeat("\u0301\u0302", 3000),
	"emoji":   strings.Repeat("👨\u200d👩\u200d👧🏽🇬🇧", 400),
	"escapes": "text\n" + strings.Repeat("\u202e\u200b\x1b[0m", 1500),
	"no UTF-8": strings.Repeat("text\n", content.SniffSize/5+1) + strings.Repeat(
		"\xf0\x9f\x98\x80\x80\x80\x80\x80", 600,
	) + strings.Repeat("\xe4\xb8", 900),
	"one JSON":  `{"a":"` + strings.Repeat(`x\n`, 3000) + `"}`,
	"returns":   strings.Repeat("\r", 2000) + "\n" + strings.Repeat("ab\r", 900),
	"cheap run": strings.Repeat(" ", 20_000) + strings.Repeat("\x01", 1000) + strings.Repeat(" ", 20_000) + "end",
}

// The calls that pages of slice name show all of a source, each byte once, whatever a page has room for.
func TestSlicePagesLoseNothing(t *testing.T) {
	promise.OrdinaryRun(t)
	dir := t.TempDir()
	for name, text := range slicePages {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	root, err := tree.Open(dir)
	expect.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	f, err := funnel.New(funnel.Options{})
	expect.Must(t, err)
	sources := source.Set{Roots: []*tree.Root{root}}
	next := regexp.MustCompile(`^showing (?:bytes|chars) \d+-\d+ of (?:\?|\d+); next: slice (\{.*\})$`)
	for name, text := range slicePages {
		for _, unit := range []string{"bytes", "chars"} {
			for _, pageTokens := range []int{400, 4000, 40_000} {
				t.Run(name+"/"+unit+"/"+strconv.Itoa(pageTokens), func(t *testing.T) {
					args, from := `{"source":"`+name+`","`+unit+`":"0-"}`, 0
					for pages := 1; ; pages++ {
						a, err := f.Call(t.Context(), funnel.Request{
							Tool: fs.Slice(), Args: json.RawMessage(args), Sources: sources, Limits: funnel.Limits{PageTokens: pageTokens},
						})
						if err != nil || a.Failed {
							t.Fatalf("%s: %v %.300q", args, err, a.Blocks)
						}
						if shown := a.Receipts[0].ShownTokens; shown > int64(pageTokens) {
							t.Errorf("%s: %d tokens shown", args, shown)
						}
						header, _, _ := strings.Cut(a.Blocks[0].Text, "\n")
						m := next.FindStringSubmatch(header)
						to := len(text)
						if m != nil {
							to = begins(t, text, m[1])
						}
						if to <= from && text != "" {
							t.Fatalf("%s leads to %s", args, header)
						}
						rows := a.Blocks[len(a.Blocks)-1].Text
						if want := content.Visible(text[from:to], false); !sameLines(rows, want) {
							t.Fatalf("%s, up to %d: page %d is\n%.300q, want\n%.300q", args, to, pages, rows, want)
						}
						if m == nil {
							return
						}
						args, from = m[1], to
					}
				})
			}
		}
	}
}

// begins is the byte at which a call for the rest of a text begins.
func begins(t *testing.T, text, args string) int {
	t.Helper()
	var a struct{ Bytes, Chars string }
	expect.Must(t, json.Unmarshal([]byte(args), &a))
	n, err := strconv.Atoi(strings.TrimSuffix(a.Bytes+a.Chars, "-"))
	expect.Must(t, err)
	if a.Chars == "" {
		return n
	}
	for at := range text { // at each char, invalid bytes too
		if n == 0 {
			return at
		}
		n--
	}
	return len(text)
}

// sameLines says whether two texts are the same, but for imitations, which are marked in what is shown.
func sameLines(shown, visible string) bool {
	return slices.EqualFunc(strings.Split(shown, "\n"), strings.Split(visible, "\n"), func(shown, visible string) bool {
		return shown == visible || shown == ">"+visible
	})
}
