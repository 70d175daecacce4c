package linesearch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// plainHits asks regexp for every line.
func plainHits(m *Matcher, text []byte) (ends []uint32) {
	for at := 0; at < len(text); {
		next := lineEnd(text, at)
		if m.re().Match(m.text(text[at:next])) {
			ends = append(ends, uint32(next-1))
		}
		at = next
	}
	return ends
}

// checkFinder compares a finder with regexp in every way it can take, with tables that are large, and so small that
// they are emptied all the time.
func checkFinder(t testing.TB, p Pattern, text []byte) {
	t.Helper()
	m, err := Compile(p)
	if err != nil || m.multi {
		return
	}
	want := plainHits(m, text)
	a := m.auto()
	if a == nil {
		return // too many sets, or a surrogate
	}
	for _, c := range []struct {
		name      string
		maxMemory int
		lasting   bool
		needles   []literal.Needle
		vectors   func() literal.Searcher
	}{
		{"needles", maxWalker, false, m.need.Needles, nil},
		{"needles at once", maxWalker, false, m.need.Needles, m.newSearcher},
		{"walker", maxWalker, false, nil, nil},
		{"small table", 0, true, nil, nil},
		{"small table, needles", 0, true, m.need.Needles, m.newSearcher},
		{"given up", 0, false, nil, nil},
	} {
		small := *m
		small.need.Needles, small.newSearcher = c.needles, c.vectors
		few := newAutomaton(mustParse(p), !m.cr, m.list, new(atomic.Bool))
		few.maxMemory, few.lasting = c.maxMemory, c.lasting
		small.auto = func() *automaton { return few }
		f := small.finder(context.Background())
		for range 2 { // the second time the states are there
			h := hits{}
			expect.Must(t, f.find(text, &h))
			if !slices.Equal(h.at, want) {
				t.Fatalf("%s: pattern %+v text %q: lines that end at %d , want %d", c.name, p, text, h.at, want)
			}
		}
		f.release()
	}
}

func FuzzFinder(f *testing.F) {
	f.Add("foo|bar$", []byte("a foo\r\nbar\r\nx bar"), byte(0))
	f.Add(`\bta\w+k\B`, []byte("ta\u017f\u212a\nTASK\n\xff\x00"), byte(2))
	f.Add("\ufffd", []byte("\xff\n\ufffd\n\xe4\xb8x\n\xe4\xb8\n"), byte(0))
	f.Add(`[^a]$`, []byte("a\r\n\r\r\n\r"), byte(0))
	f.Add(`\pL{2}\x{10ffff}?`, []byte("世界\n\xed\xa0\x80\n\xf4\x90\x80\x80\n"), byte(0))
	f.Add(`(a|b|ab)*.{3}c`, []byte("abababxyzc\naabb\n"), byte(0))
	f.Add(`^\s*$`, []byte("\n \n\t\r\nx\n"), byte(0))
	f.Fuzz(func(t *testing.T, expr string, text []byte, how byte) {
		if len(expr) > 60 || len(text) > 200 {
			return
		}
		text = bytes.Repeat(text, 1+int(how>>2)%8) // long enough for lanes
		checkFinder(t, Pattern{Expr: expr, Literal: how&1 != 0, IgnoreCase: how&2 != 0}, text)
	})
}

func TestFinderFindsWhatRegexpFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Pattern{
			Expr: exprs().Draw(rt, "expr"), IgnoreCase: rapid.Bool().Draw(rt, "ignore_case"),
			Multiline: rapid.Bool().Draw(rt, "multiline"),
		}
		text := bytes.Repeat(texts().Draw(rt, "text"), rapid.IntRange(1, 6).Draw(rt, "times"))
		checkFinder(t, p, text)
	})
}

// TestRowsOfCharacters compares the lines that a row of characters finds with those of regexp: each position of the row
// may be a part of a state.
func TestRowsOfCharacters(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	for range 300 {
		expr, text := "", ""
		for range 1 + random.IntN(6) {
			expr += pick("a", "[a-c]", ".", "[^b]", `\d`, `\w{3}`, "(bc)", ".{12}", "x", "[^u-z]{9}", "é")
		}
		for range 20 {
			for range random.IntN(60) {
				text += pick("a", "b", "c", "x", "1", "é", "\xff", "\r", " ", "K", "ſ")
			}
			text += pick("\n", "\r\n")
		}
		checkFinder(t, Pattern{Expr: expr, IgnoreCase: random.IntN(3) == 0}, []byte(text))
	}
}

// TestEveryRune holds the alphabet against regexp: each rune alone on a line, and the bytes that are none.
func TestEveryRune(t *testing.T) {
	promise.OrdinaryRun(t)
	var text bytes.Buffer
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r%64 < 2 || r%64 > 61 || r < 0x3000 {
			fmt.Fprintf(&text, "%c\n", r)
		}
	}
	for a := range 256 {
		for b := range 256 {
			text.Write([]byte{byte(a), byte(b), 0x80, '\n', 0xF0, byte(a), byte(b), 0x80, '\n'})
		}
	}
	for _, expr := range []string{`^\pL$`, `^[^\pL]$`, `^[\x{7ff}-\x{d7ff}\x{e001}-\x{fffe}]$`,
		`^[^\x{10000}-\x{10fffe}]$`, "(?i)^[k-sσ]$", `^\x{d800}?$`, `^[\x{d000}-\x{dfff}]$`, `^.$`, `\pN|ß`} {
		m, err := Compile(Pattern{Expr: expr})
		expect.Must(t, err)
		f := m.finder(context.Background())
		var h hits
		expect.Must(t, f.find(text.Bytes(), &h))
		if a := m.auto(); a != nil && a.abandoned.Load() {
			t.Errorf("%s was given up", expr)
		}
		if want := plainHits(m, text.Bytes()); !slices.Equal(h.at, want) {
			t.Errorf("%s: %d lines, want %d", expr, len(h.at), len(want))
		}
	}
}

// TestAutomatonIsGivenUp sees that a pattern that needs a new state at almost every byte ends with regexp, and that
// the answer is right.
func TestAutomatonIsGivenUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 3000 {
		for range 100 {
			text.WriteByte("ab"[r.IntN(2)])
		}
		text.WriteByte('\n')
	}
	m, err := Compile(Pattern{Expr: "[ab]*a[ab]{40}[c-z]"})
	expect.Must(t, err)
	totals, err := m.Scan(
		context.Background(), strings.NewReader(text.String()+"b"+strings.Repeat("a", 41)+"c\n"), Options{}, nil,
	)
	if err != nil || totals.Matches != 1 || totals.Lines != 3001 {
		t.Errorf("%+v, %v", totals, err)
	}
	if !m.auto().abandoned.Load() {
		t.Error("it was not given up")
	}
	w := m.auto().walker()
	if most := maxWalker + stateMemory + 4*w.columns + 200; w.memory > most { // the last state is made above the limit
		t.Errorf("the states of a walker take %d bytes", w.memory)
	}
}

// TestPatternsWithAnAutomaton sees which have one: their cost is known before it is paid.
func TestPatternsWithAnAutomaton(t *testing.T) {
	for expr, want := range map[string]bool{
		"a": true, `\pL+\pN+\p{Greek}`: true, "(?i)" + strings.Repeat("[a-zé]", 300): true,
		strings.Repeat(`\pL[^\pN]\p{Han}\PS`, 30): true, distinctSets(500): false, `a\x{d800}`: false,
	} {
		m, err := Compile(Pattern{Expr: expr})
		expect.Must(t, err)
		expect.Equal(t, m.auto() != nil, want, expr)
	}
}

// distinctSets is a pattern of n sets, each with 200 places of its own above ASCII.
func distinctSets(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("[")
		for k := range 30 {
			fmt.Fprintf(&b, "%c", rune(0x4000+i*31+k*2))
		}
		b.WriteString("]")
	}
	return b.String()
}

func mustParse(p Pattern) *syntax.Regexp {
	expr := p.Expr
	if p.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	f, _ := flags(p)
	tree, err := syntax.Parse(expr, f)
	if err != nil {
		panic(err)
	}
	return tree
}

// The table fills while lanes stand in the middle of their lines: all of them go on in the new one.
func TestLanesOutliveTheirTable(t *testing.T) {
	promise.OrdinaryRun(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		text := bytes.Repeat([]byte("q\n"), probeLines+1) // behind it lanes are cut
		for range 4 + r.IntN(30) {
			for range r.IntN(300) {
				text = append(text, "aab b"[r.IntN(5)])
			}
			text = append(text, "c\n"[r.IntN(2):]...)
		}
		checkFinder(t, Pattern{Expr: "a[ab]{5}c"}, text)
	}
}

// A pattern that is compiled again is the same, until its automaton was given up for some text.
func TestCompiledIsKept(t *testing.T) {
	p := Pattern{Expr: "kept [0-9]+ times", IgnoreCase: true}
	first, err := Compile(p)
	expect.Must(t, err)
	if again, err := Compile(p); err != nil || again != first {
		t.Errorf("compiled anew: %v", err)
	}
	if other, err := Compile(Pattern{Expr: p.Expr}); err != nil || other == first {
		t.Errorf("another pattern has its matcher, %v", err)
	}
	first.auto().abandoned.Store(true)
	if again, err := Compile(p); err != nil || again == first || again.auto().abandoned.Load() {
		t.Errorf("what was given up is given again, %v", err)
	}
	if _, err := Compile(Pattern{Expr: "("}); err == nil {
		t.Error("a bad pattern compiles")
	}
	if _, err := Compile(Pattern{Expr: "("}); err == nil {
		t.Error("a bad pattern compiles the second time")
	}
}
