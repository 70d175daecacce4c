package linesearch

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// tiny makes every border of the reading code be met by texts of a few hundred bytes.
var (
	tiny = sizes{block: 24, held: 40, history: 36, text: 60, large: 1 << 40}
	// tiny, and all of it by several workers
	split = sizes{block: 24, held: 40, history: 36, text: 60, large: 30, workers: 3, overlap: 12}
)

// told is a line as the tests compare it.
type told struct {
	Number, End, Offset, Size int64
	Text                      string
	Match                     bool
}

// oracle is the plain way: split, and ask stdlib regexp line by line; for multiline, FindAll on the whole text.
func oracle(p Pattern, o Options, text []byte) (out []told, totals Totals) {
	expr := p.Expr
	if p.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	flags, prefix := flags(p)
	tree, err := syntax.Parse(expr, flags)
	if err != nil {
		panic(err)
	}
	cr := namesCR(tree)
	re := regexp.MustCompile(prefix + expr)

	var all []told
	for at, n := 0, int64(1); at < len(text); n++ {
		end := len(text)
		line := text[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, end = line[:i], at+i+1
			if !cr {
				line = bytes.TrimSuffix(line, []byte("\r"))
			}
		}
		l := told{n, n, int64(at), int64(len(line)), string(line), false}
		if !p.Multiline {
			l.Match = re.Match(line) != o.Invert
		}
		all = append(all, l)
		at = end
	}
	if p.Multiline {
		all = oracleMultiline(re, regexp.MustCompile(withoutTextStart(tree).String()), cr, text, all)
	}
	due := make([]bool, len(all))
	for i, l := range all {
		if l.Match {
			totals.Matches++
			for j := max(0, i-o.Before); j <= min(len(all)-1, i+o.After); j++ {
				due[j] = true
			}
		}
	}
	for i, l := range all {
		if due[i] {
			out = append(out, l)
		}
	}
	if n := len(all); n > 0 {
		totals.Lines = all[n-1].End
	}
	totals.Bytes = int64(len(text))
	return out, totals
}

// oracleMultiline merges the lines of every match of the text with its \r\n read as \n. FindAll leaves out an empty
// match right after another one; at the start of a line it counts here, since it is on a line of its own.
func oracleMultiline(re, rest *regexp.Regexp, cr bool, text []byte, all []told) []told {
	seen := text
	if !cr {
		seen = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	group := make([]int, len(all)) // the match a line belongs to
	locs := re.FindAllIndex(seen, -1)
	for _, loc := range locs {
		if end := loc[1]; end > 0 && end < len(seen) && seen[end-1] == '\n' {
			if next := rest.FindIndex(seen[end:]); next != nil && next[1] == 0 {
				locs = append(locs, []int{end, end})
			}
		}
	}
	slices.SortStableFunc(locs, func(a, b []int) int { return a[0] - b[0] })
	for k, loc := range locs {
		if loc[0] == len(seen) && (len(seen) == 0 || seen[len(seen)-1] == '\n') {
			continue
		}
		last := max(loc[0], loc[1]-1)
		first, end := bytes.Count(seen[:loc[0]], newline), bytes.Count(seen[:min(last, len(seen))], newline)
		id := k + 1
		if group[first] != 0 {
			id = group[first]
		}
		for i := first; i <= end; i++ {
			group[i] = id
		}
	}
	var out []told
	for i, l := range all {
		if n := len(out); group[i] != 0 && i > 0 && group[i-1] == group[i] {
			out[n-1].End = l.Number
			out[n-1].Size = l.Offset + l.Size - out[n-1].Offset
			out[n-1].Text = string(text[out[n-1].Offset : l.Offset+l.Size])
			continue
		}
		l.Match = group[i] != 0
		out = append(out, l)
	}
	return out
}

// scanAll is what Scan tells, with windows large enough to hold everything unless o says otherwise.
func scanAll(t testing.TB, m *Matcher, o Options, r io.Reader) (out []told, totals Totals) {
	t.Helper()
	if o.Window == 0 {
		o.Window = 1 << 20
	}
	totals, err := m.Scan(context.Background(), r, o, func(l Line) error {
		out = append(out, told{l.Number, l.End, l.Offset, l.Size, string(l.Text), l.Match})
		return nil
	})
	expect.Must(t, err, "scan")
	return out, totals
}

// once hides that a reader can be read again, and reads in odd pieces.
type once struct {
	r io.Reader
	n int
}

func (o *once) Read(p []byte) (int, error) {
	o.n++
	return o.r.Read(p[:min(len(p), 1+o.n*7%31)])
}

// check compares Scan with the oracle in every way of reading.
func check(t testing.TB, p Pattern, o Options, text []byte) {
	t.Helper()
	m, err := Compile(p)
	if err != nil {
		return
	}
	want, totals := oracle(p, o, text)
	for _, l := range want {
		if l.Match && !o.Invert && (!m.MayMatch([]byte(l.Text)) || !m.MayMatch(text)) {
			t.Fatalf("pattern %+v text %q: line %q matches, and may not (needles %+v)", p, text, l.Text, m.need.Needles)
		}
	}
	ways := []way{
		{"usual, again", defaultSizes, bytes.NewReader(text)},
		{"usual, once", defaultSizes, &once{r: bytes.NewReader(text)}},
		{"tiny, again", tiny, bytes.NewReader(text)},
		{"tiny, once", tiny, &once{r: bytes.NewReader(text)}},
		{"split", split, bytes.NewReader(text)},
	}
	if m.newSearcher != nil && !o.Invert && o.Before+o.After == 0 && len(text) > 0 {
		ways = append(ways, way{"sparse", split, onDisk(t, text)})
	}
	for _, c := range ways {
		if c.name == "tiny, once" && m.multi && len(text) > tiny.text {
			continue // told as Short: see TestMultilineOfAReaderThatCannotBeReadAgain
		}
		small := *m
		small.sizes = c.sizes
		if longest(small.need.Needles) >= c.sizes.block { // 2,000 runes at most: never so in the usual sizes
			continue
		}
		got, gotTotals := scanAll(t, &small, o, c.r)
		// of a line that is not held whole only a window is told, unless it is a match that can be read again
		for i := range got {
			again := got[i].Match && !o.Invert && c.name != "tiny, once"
			if c.sizes != defaultSizes && !again && i < len(want) && int64(len(got[i].Text)) < got[i].Size {
				if !strings.Contains(want[i].Text, got[i].Text) {
					t.Errorf(
						"%s: line %d: the window %q is not in %q",
						c.name,
						got[i].Number,
						got[i].Text,
						want[i].Text,
					)
				}
				got[i].Text = want[i].Text
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf(
				"%s: pattern %+v options %+v text %q (needles %+v sure %v near %v): -want +got\n%s",
				c.name,
				p,
				o,
				text,
				m.need.Needles,
				m.need.Suffice,
				m.need.Near,
				d,
			)
		}
		if gotTotals.Letters && (p.Literal || !UsesASCII(p.Expr) || !HasLetters(text)) {
			t.Fatalf("%s: pattern %+v text %q: letters", c.name, p, text)
		}
		gotTotals.Letters = false // of what was searched: parts that cannot match need not be
		expect.MustSame(t, gotTotals, totals, "%s: pattern %+v options %+v text %q: totals", c.name, p, o, text)
	}
}

// way is one of reading a text.
type way struct {
	name  string
	sizes sizes
	r     io.Reader
}

// scratch is a file without a name.
var scratch = sync.OnceValues(func() (*os.File, error) {
	f, err := os.CreateTemp("", "lines-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
})

// onDisk reads a text from a file, until the next one is put there.
func onDisk(t testing.TB, text []byte) io.Reader {
	t.Helper()
	f, err := scratch()
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	expect.Must(t, err)
	return io.NewSectionReader(f, 0, int64(len(text)))
}

func longest(ns []literal.Needle) int { return literal.NewFinders(ns).Longest() }

// exprs draws patterns made of the pieces that the matcher treats in its own way.
func exprs() *rapid.Generator[string] {
	atom := rapid.SampledFrom([]string{
		"a", "b", "foo", "bar", "foobar", "k", "s", "K", "task", "é", "ß", "ſ", "\u212a", "世界", "\ufffd", " ", "x",
		".", "[ab]", "[^a]", "[^\\n]", `\s`, `\S`, `\w`, `\d`, `\b`, `\B`, "^", "$", `\A`, `\z`, "(?s:.)",
		"[\\r\\n]", `\r`, `\n`, `\r?\n`,
		"(?i:foo)", "(?i)s", "(?-i:B)", "(?-s:.)", `\x00`, `\pL`, "", "[kK]", "[[:upper:]]", "(?m:^)", "(?-m:$)",
		"e", "error", ":",
	})
	return rapid.Custom(func(t *rapid.T) string {
		var build func(depth int) string
		build = func(depth int) string {
			if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
				return atom.Draw(t, "atom")
			}
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0:
				return "(?:" + build(depth-1) + ")" + rapid.SampledFrom(
					[]string{"*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{0,2}", "{2,}"},
				).Draw(t, "rep")
			case 1:
				return "(" + build(depth-1) + "|" + build(depth-1) + ")"
			default:
				return build(depth-1) + build(depth-1)
			}
		}
		return build(4)
	})
}

func texts() *rapid.Generator[[]byte] {
	piece := rapid.SampledFrom([]string{
		"a", "b", "foo", "bar", "foobar", "FOO", "k", "s", "task", "TASK", "ta\u017fk", "tas\u212a", "é", "ß", "ẞ",
		"世界", "\ufffd", "\xff", "\xc3", "\xe4\xb8",
		" ", "\n", "\n", "\n", "\r\n", "\r\n", "\r", "\x00", "x", "error: ", "\t", "0", "ſ", "\u212a", "🏳️‍🌈",
		"\u0085", "Error", "\v",
	})
	return rapid.Custom(func(t *rapid.T) []byte {
		var b []byte
		for range rapid.IntRange(0, 60).Draw(t, "pieces") {
			b = append(b, piece.Draw(t, "piece")...)
		}
		return b
	})
}

func TestSameLinesAsThePlainWay(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		expect.Must(t, f.Value.Set("3000"))
		defer func() { _ = f.Value.Set(f.DefValue) }()
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := Pattern{
			Expr:       exprs().Draw(rt, "expr"),
			Literal:    rapid.IntRange(0, 5).Draw(rt, "literal") == 0,
			IgnoreCase: rapid.Bool().Draw(rt, "ignore_case"),
			Multiline:  rapid.Bool().Draw(rt, "multiline"),
		}
		o := Options{
			Invert: !p.Multiline && rapid.Bool().Draw(rt, "invert"),
			Before: rapid.IntRange(0, 3).Draw(rt, "before"),
			After:  rapid.IntRange(0, 3).Draw(rt, "after"),
		}
		check(t, p, o, texts().Draw(rt, "text"))
		if t.Failed() {
			rt.FailNow()
		}
	})
}

// May is worth asking: it rules out texts, and no wrong ones (check).
func TestMayRulesOut(t *testing.T) {
	for _, c := range []struct {
		p    Pattern
		text string
		want bool
	}{
		{Pattern{Expr: "error: .*disk"}, "all is well", false},
		{Pattern{Expr: "error: .*disk"}, "error: the disk", true},
		{Pattern{Expr: "Tune", IgnoreCase: true}, "a TUN", false},
		{Pattern{Expr: "Diff", IgnoreCase: true}, "a DIFF", true},
		{Pattern{Expr: "foo|bar"}, "fo ba", false},
		{Pattern{Expr: "foo|bar"}, "x bar", true},
		{Pattern{Expr: `\d+`}, "", true}, // nothing is known of it
	} {
		m, err := Compile(c.p)
		expect.Must(t, err)
		expect.Equal(t, m.MayMatch([]byte(c.text)), c.want, "%+v in %q", c.p, c.text)
	}
}

func FuzzScan(f *testing.F) {
	f.Add("foo|bar$", []byte("a foo\r\nbar\r\nx bar"), byte(0), byte(1))
	f.Add(`(?s)a.*?b`, []byte("xa\ny\nb a\nb\n"), byte(4), byte(2))
	f.Add(`task`, []byte("ta\u017f\u212a\nTASK\n\xff\x00"), byte(2), byte(0))
	f.Add(`\s+x?`, []byte("a\n\n\r\n x\n"), byte(4), byte(0))
	f.Add("", []byte("\n\n"), byte(8), byte(3))
	f.Add("\ufffd", []byte("\xff\n\ufffd\n"), byte(1), byte(0))
	f.Fuzz(func(t *testing.T, expr string, text []byte, how, context byte) {
		if len(expr) > 60 || len(text) > 600 {
			return
		}
		p := Pattern{Expr: expr, Literal: how&1 != 0, IgnoreCase: how&2 != 0, Multiline: how&4 != 0}
		check(
			t,
			p,
			Options{Invert: how&8 != 0 && !p.Multiline, Before: int(context & 3), After: int(context >> 2 & 3)},
			text,
		)
	})
}

func ExampleMatcher_Scan() {
	m, err := Compile(Pattern{Expr: "panic|error", IgnoreCase: true})
	if err != nil {
		panic(err)
	}
	log := "start\nError: disk\nretry\nstop\n"
	totals, err := m.Scan(context.Background(), strings.NewReader(log), Options{After: 1}, func(l Line) error {
		fmt.Println(l.Number, l.Match, string(l.Text))
		return nil
	})
	fmt.Println(totals.Matches, "of", totals.Lines, err)
	// Output:
	// 2 true Error: disk
	// 3 false retry
	// 1 of 4 <nil>
}
