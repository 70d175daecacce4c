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
	for _, one := range expect.Table[struct{ Name, Dir, Text, Want string }](t, "testdata/check.tsv") {
		t.Run(one.Name, func(t *testing.T) {
			all := Check(one.Text, one.Dir, testTree())
			expect.Equal(t, show(all), one.Want, one.Text)
			checkRanges(t, one.Text, all)
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
