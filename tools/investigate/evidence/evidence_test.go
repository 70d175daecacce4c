package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// tree is a Reader of a map. A name that ends in "/" is a directory, text that contains NUL is binary.
type tree struct {
	files map[string]string
	reads map[string]int
}

func newTree(files map[string]string) *tree { return &tree{files, map[string]int{}} }

func (t *tree) Read(name string) ([]byte, error) {
	t.reads[name]++
	body, ok := t.files[name]
	switch {
	case !ok && t.Exists(name):
		return nil, errors.New("is a directory")
	case !ok:
		return nil, fs.ErrNotExist
	case strings.Contains(body, "\x00"):
		return nil, fmt.Errorf("%s: %w", name, ErrUndecidable)
	case body == "DENIED":
		return nil, fs.ErrPermission
	}
	return []byte(body), nil
}

func (t *tree) Exists(name string) bool {
	_, ok := t.files[name]
	for other := range t.files {
		ok = ok || strings.HasPrefix(other, name+"/")
	}
	return ok
}

// numbered returns count lines "line N", some replaced.
func numbered(count int, replaced map[int]string) string {
	var b strings.Builder
	for i := 1; i <= count; i++ {
		if s, ok := replaced[i]; ok {
			b.WriteString(s + "\n")
		} else {
			fmt.Fprintf(&b, "line %d;\n", i)
		}
	}
	return b.String()
}

func testTree() *tree {
	return newTree(map[string]string{
		"pool.go": numbered(40, map[int]string{
			14: "\tmaxOpen = 20", 15: "\tmaxIdle  =\t5 // Keep few. Then close.", 20: "func (p *Pool) Close() {",
			21: "\treturn p.close()", 22: "}", 30: "twice", 10: "twice", 5: `log.Println("hello")`,
			35: "see main.go:12 for more", 36: "+++ --- +++", 37: "ünïcode → größer"}),
		"session.go":         "package session\n\n// retries 3 times\nfunc retry() {}\n",
		"sub/pool.go":        "sub line one\nsub maxOpen = 3\n",
		"sub/only.go":        "only here\n",
		"sub/deep/x.go":      "deep\n",
		"my file.txt":        "one\ntwo words\n",
		"app/[slug]/page.ts": "slugged\n",
		"Makefile":           "all: build\n\tgo build ./...\n",
		"blob.bin":           "a\x00b",
		"denied.txt":         "DENIED",
		"empty.txt":          "",
		".gitignore":         "*.tmp\nbuild-out/\n",
		"server/a.go":        "listen here\n",
		"far.txt":            numbered(300, map[int]string{10: "alpha", 12: "beta", 250: "gamma"}),
		"crlf.txt":           "uno\r\ndos tres\r\n",
		"libx.so.6":          "not an extension\n",
		"@scope/+page.ts":    "scoped text\n",
		"words.txt": "limit = 1000\nrate = 100.5 percent\ndue 450,000 euro.\nf(10,20)\nx = 70, y = 7\n" +
			"连接数据库池 Cafe\u0301\nmax_open_files\n",
	})
}

// show renders citations as "cited file verdict line reason", one a line.
func show(all []Citation) string {
	var lines []string
	for _, one := range all {
		s := one.Cited + " " + string(one.Verdict)
		if one.Line > 0 {
			s += fmt.Sprintf(" %d", one.Line)
		}
		if one.Reason != "" {
			s += " (" + one.Reason + ")"
		}
		lines = append(lines, s)
	}
	return strings.Join(lines, "; ")
}

func TestCheck(t *testing.T) {
	const notIn = " (the quote is not in the file)"
	for _, one := range []struct{ name, dir, text, want string }{
		{"the example", "",
			`The pool is bounded: "maxOpen = 20" (pool.go:14). Retries 3 times, session.go:3 "retries 3 times".`,
			"pool.go:14 holds 14; session.go:3 holds 3"},
		{"moved", "", `It is "maxOpen = 20" (pool.go:2).`, "pool.go:2 moved 14"},
		{"absent", "", `It is "maxOpen = 21" (pool.go:14).`, "pool.go:14 absent" + notIn},
		{"no case folding", "", `It is "MaxOpen = 20" (pool.go:14).`, "pool.go:14 absent" + notIn},
		{"unanchored", "", `It is bounded (pool.go:14).`, "pool.go:14 unanchored"},
		{"out of range", "", `It is bounded (pool.go:90).`, "pool.go:90 absent (line 90 of 40)"},
		{"range partly out", "", `It is bounded (pool.go:39-44).`, "pool.go:39-44 absent (line 44 of 40)"},
		{"range partly out, quote in it", "", `See "line 40;" at pool.go:39-44.`, "pool.go:39-44 holds 40"},
		{"out of range, quoted", "", `It is "maxOpen" (pool.go:90).`, "pool.go:90 moved 14"},
		{"line 0", "", `It is at pool.go:0.`, "pool.go:0 absent (line 0 of 40)"},
		{"backwards", "", `It is at pool.go:9-7.`, "pool.go:9-7 absent (line 7 is before line 9)"},
		{"huge line", "",
			`It is at pool.go:99999999999999999999999.`, "pool.go:99999999999999999999999 absent (line 1000000000 of 40)"},
		{"empty file", "", `It is at empty.txt:1.`, "empty.txt:1 absent (line 1 of 0)"},
		{"other file only", "", `It is "retries 3 times" (pool.go:3).`, "pool.go:3 absent" + notIn},
		{"no file", "", `It is "maxOpen" (gone.go:3).`, "gone.go:3 absent (no such file)"},
		{"binary", "",
			`It is "maxOpen" (blob.bin:3).`, "blob.bin:3 unknown (blob.bin: " + ErrUndecidable.Error() + ")"},
		{"denied", "", `It is at denied.txt:3.`, "denied.txt:3 unknown (permission denied)"},
		{"directory with a line", "", `It is at server:3.`, "server:3 unknown (is a directory)"},
		{"nearest of several", "", `See "twice" at pool.go:24.`, "pool.go:24 moved 30"},
		{"tie goes to the first", "", `See "twice" at pool.go:20.`, "pool.go:20 moved 10"},
		{"curly quotes", "", `It is “maxOpen = 20” (pool.go:14).`, "pool.go:14 holds 14"},
		{"back-ticks", "", "It is `maxOpen = 20` (pool.go:14).", "pool.go:14 holds 14"},
		{"double back-ticks", "", "It is `` maxOpen = 20 `` (pool.go:14).", "pool.go:14 holds 14"},
		{"fence", "",
			"So (pool.go:20-22):\n```go\nfunc (p *Pool) Close() {\n  return p.close()\n}\n```\n", "pool.go:20-22 holds 20"},
		{"ticked citation", "", "It is \"maxOpen = 20\" (`pool.go:14`).", "pool.go:14 holds 14"},
		{"quoted citation", "", "It is `maxOpen = 20` (\"pool.go:14\").", "pool.go:14 holds 14"},
		{"ticked bare path is no quote", "",
			"In `session.go` and `server/` see pool.go:14.", "pool.go:14 unanchored"},
		{"ticked name that is no path", "", "In `session_go` see pool.go:14.", "pool.go:14 absent" + notIn},
		{"quoted bare path is a quote", "", "In \"session.go\" see pool.go:14.", "pool.go:14 absent" + notIn},
		{"citation in a quote", "", `It has "see main.go:12 for more" (pool.go:35).`, "pool.go:35 holds 35"},
		{"nested marks", "", "It has `log.Println(\"hello\")` (pool.go:5).", "pool.go:5 holds 5"},
		{"escaped marks", "", `It has "log.Println(\"hello\")" (pool.go:5).`, "pool.go:5 absent" + notIn},
		{"short quote", "", `It is "20" (pool.go:14).`, "pool.go:14 unanchored"},
		{"short quote, multi-byte", "", `It is "ün" (pool.go:37).`, "pool.go:37 unanchored"},
		{"punctuation only", "", `It is "+++ --- +++" (pool.go:36).`, "pool.go:36 unanchored"},
		{"dots only", "", `It is "..." and "…" (pool.go:36).`, "pool.go:36 unanchored"},
		{"unicode", "", `It is "ünïcode → größer" (pool.go:37).`, "pool.go:37 holds 37"},
		{"inch mark", "", `A 5" disk is "maxOpen = 20" (pool.go:14).`, "pool.go:14 holds 14"},
		{"unclosed mark", "", `It is "maxOpen = 20 (pool.go:14).`, "pool.go:14 unanchored"},

		{"white space collapses", "", "It is \"maxIdle =\n 5\" (pool.go:15).", "pool.go:15 holds 15"},
		{"white space is needed", "", `It is "maxOpen =20" (pool.go:14).`, "pool.go:14 absent" + notIn},
		{"outer blank", "", `It is " maxOpen " (pool.go:14).`, "pool.go:14 holds 14"},
		{"outer blank inside a word", "", `It is "max " (pool.go:14).`, "pool.go:14 absent" + notIn},
		{"inside a word", "", `It is "axOpen = 20" (pool.go:14).`, "pool.go:14 absent" + notIn},
		{"name inside a word", "", "It has `retr` (session.go:3).", "session.go:3 absent" + notIn},
		{"inside an identifier", "", `It is "max_open" (words.txt:7).`, "words.txt:7 absent" + notIn},
		{"inside a number", "", `It is "limit = 100" (words.txt:1).`, "words.txt:1 absent" + notIn},
		{"inside a number, elsewhere whole", "", `It is "limit = 1000" (words.txt:2).`, "words.txt:2 moved 1"},
		{"before a decimal point", "", `It is "rate = 100" (words.txt:2).`, "words.txt:2 absent" + notIn},
		{"after a decimal point", "", `It is "5 percent" (words.txt:2).`, "words.txt:2 absent" + notIn},
		{"before a thousands separator", "", `It is "due 450" (words.txt:3).`, "words.txt:3 absent" + notIn},
		{"after a thousands separator", "", `It is "000 euro" (words.txt:3).`, "words.txt:3 absent" + notIn},
		{"before a full stop", "", `It is "due 450,000 euro" (words.txt:3).`, "words.txt:3 holds 3"},
		{"arguments without blanks", "", `It is "f(10" (words.txt:4).`, "words.txt:4 holds 4"},
		{"later match at a border", "", `It has "= 7" (words.txt:5).`, "words.txt:5 holds 5"},
		{"script without blanks", "", `It has "数据库" (words.txt:6).`, "words.txt:6 holds 6"},
		{"combining mark", "", "It has \"Cafe\" (words.txt:6).", "words.txt:6 absent" + notIn},
		{"CRLF", "", `It is "uno dos tres" (crlf.txt:1-2).`, "crlf.txt:1-2 holds 1"},
		{"several lines", "", `It has "= 20 maxIdle" (pool.go:14-15).`, "pool.go:14-15 holds 14"},
		{"several lines, one cited", "", `It has "= 20 maxIdle" (pool.go:14).`, "pool.go:14 moved 14"},
		{"several lines, cut range", "", `It has "= 20 maxIdle" (pool.go:12-14).`, "pool.go:12-14 moved 14"},
		{"ellipsis", "", `It has "func (p *Pool) … p.close()" (pool.go:20-22).`, "pool.go:20-22 holds 20"},
		{"ellipsis of dots", "", `It has "func (p *Pool) ... }" (pool.go:20-22).`, "pool.go:20-22 holds 20"},
		{"outer ellipses", "", `It has "…p.close()…" (pool.go:20-22).`, "pool.go:20-22 holds 21"},
		{"ellipsis out of order", "",
			`It has "p.close() … func (p" (pool.go:20-22).`, "pool.go:20-22 absent" + notIn},
		{"ellipsis moved", "", `It has "alpha … beta" (far.txt:100).`, "far.txt:100 moved 10"},
		{"ellipsis too far apart", "", `It has "alpha … gamma" (far.txt:100).`, "far.txt:100 absent" + notIn},
		{"ellipsis, later start", "", `It has "line … gamma" (far.txt:1).`, "far.txt:1 moved 201"},
		{"ellipsis wide, cited", "", `It has "alpha … gamma" (far.txt:1-300).`, "far.txt:1-300 holds 10"},
		{"ellipsis of overlaps", "", `It has "twice …wice" (pool.go:10).`, "pool.go:10 moved 10"},
		{"ellipsis, then inside a word", "", `It has "twice … wice" (pool.go:10).`, "pool.go:10 absent" + notIn},
		{"ellipsis cuts words", "", `It has "func (p *Po…ose() {" (pool.go:20).`, "pool.go:20 holds 20"},
		{"parts too short", "", `It has "a…b" (pool.go:10).`, "pool.go:10 unanchored"},

		{"two quotes hold", "", `It has "maxOpen" and "20" and "maxIdle" (pool.go:14-15).`, "pool.go:14-15 holds 14"},
		{"two quotes, one moved", "", `It has "maxOpen" and "p.close()" (pool.go:14-15).`, "pool.go:14-15 moved 21"},
		{"two quotes, one absent", "", `It has "maxOpen" and "p.open()" (pool.go:14-15).`,
			"pool.go:14-15 absent (quote 2 of 2 is not in the file)"},
		{"two quotes, absent beats moved", "",
			`It has "p.open()" and "p.close()" (pool.go:14-15).`, "pool.go:14-15 absent" + notIn},
		{"nearest citation", "",
			`It has "maxOpen" (pool.go:14) and "func retry" (session.go:4).`, "pool.go:14 holds 14; session.go:4 holds 4"},
		{"nearest citation, citations first", "", `In pool.go:14 "maxOpen", in session.go:4 "func retry".`,
			"pool.go:14 holds 14; session.go:4 holds 4"},
		{"tie between citations", "",
			`See pool.go:14 "maxOpen" session.go:4.`, "pool.go:14 holds 14; session.go:4 unanchored"},
		{"one quote for two", "",
			`See pool.go:14 and "func retry" session.go:4.`, "pool.go:14 unanchored; session.go:4 holds 4"},
		{"citation beats bare path", "", `In session.go "maxOpen" pool.go:14.`, "pool.go:14 holds 14"},

		{"a name beside a quote", "", "Bounded, pool.go:14 \"maxOpen = 20\", and `Close` is not used.", "pool.go:14 holds 14"},
		{"a missing name beside a quote", "", "No `Resize`: pool.go:14 \"maxOpen = 20\".", "pool.go:14 holds 14"},
		{"a name beside code", "", "Bounded, pool.go:14 `maxOpen = 20`, unlike `Close`.", "pool.go:14 holds 14"},
		{"a name does not save a quote", "", "It is `maxOpen`, \"maxOpen = 21\" (pool.go:14).", "pool.go:14 absent" + notIn},
		{"two names", "", "It has `maxOpen` (pool.go:14), and `Close` is not used.", "pool.go:14 holds 14"},
		{"two names, the other one is there", "", "In `maxOpen` it uses `Close`, pool.go:14.", "pool.go:14 holds 14"},
		{"two names, the nearest is missing", "", "In `maxOpen` it uses `Resize`, pool.go:14.", "pool.go:14 absent" + notIn},
		{"two names, both moved", "", "It has `maxOpen` and `Close` (pool.go:1).", "pool.go:1 moved 20"},
		{"a quote of something else", "", `It is "maxOpen = 20" (pool.go:14), the README says "unlimited".`,
			"pool.go:14 holds 14"},
		{"quotes on both sides", "", `It is "maxOpen" (pool.go:14), "p.open()".`,
			"pool.go:14 absent (quote 2 of 2 is not in the file)"},
		{"a name between quotes", "", "It is \"maxOpen\", `x` and \"p.open()\" (pool.go:14).",
			"pool.go:14 absent (quote 2 of 2 is not in the file)"},

		{"sentence ends", "", `It is "maxOpen". See pool.go:14.`, "pool.go:14 unanchored"},
		{"sentence ends at a mark", "", "It is pool.go:14! `maxOpen` is it.", "pool.go:14 unanchored"},
		{"sentence ends at a question mark", "", "Is it pool.go:14? “maxOpen” is.", "pool.go:14 unanchored"},
		{"no end before lower case", "", `It is "maxOpen". see pool.go:14.`, "pool.go:14 holds 14"},
		{"no end at ;", "", `It is "maxOpen"; See pool.go:14.`, "pool.go:14 holds 14"},
		{"no end at e.g.", "", "It has e.g. `maxOpen`, i.e. \"= 20\" (cf. Pool, pool.go:14).", "pool.go:14 holds 14"},
		{"no end at (i.e. X)", "", `It has "maxOpen" (i.e. The limit) at pool.go:14.`, "pool.go:14 holds 14"},
		{"no end in numbers and names", "",
			`It has "maxOpen" in Go 1.5 by .Method and x.Y at pool.go:14.`, "pool.go:14 holds 14"},
		{"end in front of Go 1.5.", "", `It has "maxOpen" in Go 1.5. See pool.go:14.`, "pool.go:14 unanchored"},
		{"no end inside a quote", "", `It says "Keep few. Then close." (pool.go:15).`, "pool.go:15 holds 15"},
		{"line break inside a sentence", "", "It is \"maxOpen\"\nin pool.go:14.", "pool.go:14 holds 14"},
		{"blank line", "", "It is \"maxOpen\"\n \nin pool.go:14.", "pool.go:14 unanchored"},
		{"bullets", "",
			"- it is \"maxOpen\"\n* in pool.go:14\n2. and \"maxOpen\"\nin pool.go:15",
			"pool.go:14 unanchored; pool.go:15 unanchored"},
		{"text before a bullet", "", "it is \"maxOpen\"\n- in pool.go:14", "pool.go:14 unanchored"},
		{"a minus is no bullet", "", "it is \"maxOpen\"\n-1 in pool.go:14", "pool.go:14 holds 14"},

		{"URL", "", `It is "maxOpen" http://x:80 https://a.b/pool.go:14 ssh://h.x:22/a.`, ""},
		{"time", "", `At 12:30 and 2024-01-02T12:30:00Z "maxOpen".`, ""},
		{"Windows", "", `At C:12, C:\pool.go:14, C:/pool.go:14, sub\pool.go:14 "maxOpen".`, ""},
		{"host without extension", "", `At localhost:8080 "maxOpen".`, ""},
		{"number only", "", `At 1.5:30 "maxOpen".`, ""},
		{"not a number", "", `At pool.go:14th x.go:y "nothing else".`, "pool.go absent" + notIn},
		{"name without extension", "", `It is "go build" (Makefile:2).`, "Makefile:2 holds 2"},
		{"number as extension", "",
			`It is "not an extension" (libx.so.6:1) not (liby.so.6:1).`, "libx.so.6:1 holds 1"},
		{"dot file", "", `It has "build-out/" (.gitignore:2).`, ".gitignore:2 holds 2"},
		{"odd names", "", `It has "scoped text" (@scope/+page.ts:1).`, "@scope/+page.ts:1 holds 1"},
		{"column", "", `It has "maxOpen" (pool.go:14:2).`, "pool.go:14 holds 14"},
		{"en dash", "", `It has "maxIdle" (pool.go:14–15).`, "pool.go:14–15 holds 15"},
		{"ASCII dash", "", `It has "maxIdle" --pool.go:15--.`, "pool.go:15 holds 15"},
		{"blank in ticks", "", "It has \"two words\" (`my file.txt:2`).", "my file.txt:2 holds 2"},
		{"blank without ticks", "", `It has "two words" (my file.txt:2).`, "file.txt:2 absent (no such file)"},
		{"brackets in ticks", "", "It has \"slugged\" (`app/[slug]/page.ts:1`).", "app/[slug]/page.ts:1 holds 1"},
		{"link", "", `It has "maxOpen" ([pool.go](pool.go:14)).`, "pool.go:14 holds 14"},

		{"note's directory first", "sub", `It has "sub maxOpen" (pool.go:2).`, "pool.go:2 holds 2"},
		{"then the target", "sub", `It has "func retry" (session.go:4).`, "session.go:4 holds 4"},
		{"from the target", "sub/deep", `It has "sub maxOpen" (sub/pool.go:2).`, "sub/pool.go:2 holds 2"},
		{"leading ./", "sub", `It has "sub maxOpen" (./pool.go:2).`, "./pool.go:2 holds 2"},
		{"parent inside", "sub", `It has "maxOpen = 20" (../pool.go:14).`, "../pool.go:14 holds 14"},
		{"parent inside, missing", "sub",
			`It has "maxOpen = 20" (../gone.go:14).`, "../gone.go:14 absent (no such file)"},
		{"parent outside", "sub", `It has "maxOpen" (../../pool.go:14).`, "../../pool.go:14 absent (outside)"},
		{"hidden parent outside", "",
			`It has "maxOpen" (sub/../../pool.go:14).`, "sub/../../pool.go:14 absent (outside)"},
		{"absolute", "",
			`It has "maxOpen" (/pool.go:14) or ~/pool.go:14.`, "/pool.go:14 absent (outside); /pool.go:14 absent (outside)"},
		{"hostile directory", "../..", `It has "maxOpen" (pool.go:14).`, "pool.go:14 holds 14"},

		{"bare path", "", `In pool.go it has "maxOpen = 20".`, "pool.go holds 14"},
		{"bare path, absent", "", `In pool.go it has "maxOpen = 21".`, "pool.go absent" + notIn},
		{"bare path in ticks", "", "In `pool.go` it has `maxOpen = 20`.", "pool.go holds 14"},
		{"bare path, name", "", `The Makefile. The Makefile has "go build".`, "Makefile holds 2"},
		{"bare path at the end", "", `It has "maxOpen = 20" in pool.go.`, "pool.go holds 14"},
		{"bare path without quote", "", `See pool.go for more.`, ""},
		{"bare path that is missing", "", `In gone.go it has "maxOpen = 20".`, ""},
		{"bare path, binary", "",
			`In blob.bin it has "maxOpen = 20".`, "blob.bin unknown (blob.bin: " + ErrUndecidable.Error() + ")"},
		{"bare directory", "", `The server says "listen here".`, ""},
		{"bare directory and file", "", `In pool.go, the server is "maxOpen = 20".`, "pool.go holds 14"},
		{"two bare paths", "",
			`In pool.go "maxOpen" and in session.go "func retry".`, "pool.go holds 14; session.go holds 4"},
		{"quote without a path", "", `It says "maxOpen = 20".`, ""},
		{"empty", "", "", ""},
	} {
		t.Run(one.name, func(t *testing.T) {
			all := Check(one.text, one.dir, testTree())
			expect.Equal(t, show(all), one.want, one.text)
			checkRanges(t, one.text, all)
		})
	}
}

// checkRanges checks what must be true of every result.
func checkRanges(t *testing.T, text string, all []Citation) {
	t.Helper()
	last := 0
	for _, one := range all {
		if one.Start < last || one.End > len(text) || text[one.Start:one.End] != one.Cited {
			t.Errorf("ranges of %+v are wrong", one)
		}
		if (one.Verdict == Holds || one.Verdict == Moved) != (one.Line > 0) || len(one.Quote) > maxShown {
			t.Errorf("line or quote of %+v is wrong", one)
		}
		if (one.Verdict == Absent || one.Verdict == Unknown) != (one.Reason != "") {
			t.Errorf("reason of %+v is wrong", one)
		}
		last = one.End
	}
}

func TestCheckFillsTheFields(t *testing.T) {
	text := "First. It has \"= 20  maxIdle\" (./pool.go:14-15). Last."
	all := Check(text, "", testTree())
	want := Citation{Cited: "./pool.go:14-15", File: "pool.go", From: 14, To: 15, Quote: "= 20  maxIdle", Verdict: Holds,
		Line: 14, Start: 31, End: 46}
	if len(all) != 1 || all[0] != want {
		t.Errorf("got  %+v\nwant %+v", all, want)
	}
}

func TestRepair(t *testing.T) {
	for _, one := range []struct{ text, want string }{
		{`"maxOpen" pool.go:2, fine. "maxIdle" (pool.go:1-3)! Also "func retry" session.go:4.`,
			`"maxOpen" pool.go:14, fine. "maxIdle" (pool.go:15-17)! Also "func retry" session.go:4.`},
		{"`maxIdle` `pool.go:1–3`", "`maxIdle` `pool.go:15–17`"},
		{`"maxIdle" pool.go:9-7`, `"maxIdle" pool.go:15-15`},
		{`"nowhere" pool.go:9-7`, `"nowhere" pool.go:9-7`},
	} {
		all := Check(one.text, ".", testTree())
		slices.Reverse(all) // the order does not matter
		got := Repair(one.text, all)
		expect.Equal(t, got, one.want)
		if n := Count(Check(got, ".", testTree())); n.Moved > 0 {
			t.Errorf("%s: %+v after the repair", got, n)
		}
	}
	stale := []Citation{{Cited: "pool.go:2", Verdict: Moved, Line: 3, Start: 1, End: 10},
		{Verdict: Moved, Start: -1, End: 99}}
	expect.Equal(t, Repair("another text", stale), "another text", "stale citations changed the text")
}

func TestCount(t *testing.T) {
	text := `"maxOpen" pool.go:14. "maxOpen" pool.go:15. "maxopen" pool.go:14. See pool.go:3. See blob.bin:1.`
	n := Count(Check(text, ".", testTree()))
	if n != (Counts{1, 1, 1, 1, 1}) || n.Total() != 4 {
		t.Errorf("%+v total %d", n, n.Total())
	}
}

func TestLimits(t *testing.T) {
	files := testTree()
	all := Check(strings.Repeat("It has \"maxOpen\" (pool.go:14) `session.go`.\n\n", 2000), ".", files)
	if n := Count(all); n != (Counts{Holds: 500, Unknown: 1500}) || !strings.Contains(all[500].Reason, "500 citations") {
		t.Errorf("%+v, %s", n, all[500].Reason)
	}
	for name, n := range files.reads {
		if n > 1 {
			t.Errorf("%s was read %d times", name, n)
		}
	}
}

// TestHostileText fails if the time grows with the square of the text: the slowest takes 0.4 s on one core.
func TestHostileText(t *testing.T) {
	const size = 1 << 17
	files := testTree()
	files.files["a.go"] = strings.Repeat("a\n", size/2)
	for _, unit := range []string{"a", " ", ".", "`", "\"", " \"a", "“", "“a.go:1 ", "``` `` ` ",
		"a.go:1 ", "a.go:1-", "a:", "://", "\\",
		"\"aaa … bbb\" a.go:3. ", "`pool.go` \"maxOpen\" x.go ", "- a.go:1\n",
		"x\n\n", "e.g. A", "…", "-", "/", "\xff", "a.go:1 \"a a a a\" ",
		strings.Repeat("`a`", 100) + "a.go:1. ", "\"" + strings.Repeat("a ", 900) + "b\" a.go:1. "} {
		body := strings.Repeat(unit, size/len(unit))
		for _, text := range []string{body, "\"maxOpen\" " + body} {
			promise.Ends(t, func() { Repair(text, Check(text, ".", files)) }, "%.20q", unit)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"", "`", "\"", "“", "\"a…b...\" pool.go:1-2", "`` ` `` pool.go:14",
		"\xff\xfepool.go:14 \"maxOpen\"",
		"x:\\", "a://", ".", "- \n* \n1. ", "```go\nx\n``` pool.go:1",
		"`pool.go:14` \"maxOpen = 20\". In Makefile `go build`",
		"pool.go:999999999999999999999-1", "“”", "\"\" pool.go:1", "é.go:1–", "../../x.go:1 /x.go:2 ./pool.go:14"} {
		f.Add(seed, "sub")
	}
	f.Fuzz(func(t *testing.T, text, dir string) {
		all := Check(text, dir, testTree())
		checkRanges(t, text, all)
		Repair(text, all)
		if n := Count(all); n.Total()+n.Unknown != len(all) {
			t.Errorf("%+v of %d", n, len(all))
		}
	})
}
