package linesearch

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// randomRow returns a pattern that is a row of characters.
func randomRow(random *rand.Rand) string {
	var b strings.Builder
	for range 1 + random.IntN(6) {
		parts := []string{"a", "[a-c]", ".", "[^b]", "\\d", "\\w{3}", "(bc)", ".{12}", "x", "[^u-z]{9}", "é"}
		b.WriteString(parts[random.IntN(len(parts))])
	}
	return b.String()
}

// TestLinear compares the lines that a row of characters finds with those of regexp.
func TestLinear(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	rows := 0
	for range 2000 {
		expr := randomRow(random)
		fold := random.IntN(3) == 0
		flags := syntax.Perl
		if fold {
			flags |= syntax.FoldCase
		}
		tree, err := syntax.Parse(expr, flags)
		if err != nil {
			t.Fatal(err)
		}
		l := newLinear(tree)
		if l == nil {
			continue
		}
		rows++
		re := regexp.MustCompile(map[bool]string{true: "(?i)", false: ""}[fold] + expr)
		var text bytes.Buffer
		for range 20 {
			for range random.IntN(60) {
				text.WriteString([]string{"a", "b", "c", "x", "1", "é", "\xff", "\r", " ", "K", "ſ"}[random.IntN(11)])
			}
			text.WriteString([]string{"\n", "\r\n"}[random.IntN(2)])
		}
		for _, cr := range []bool{false, true} {
			m := &Matcher{cr: cr}
			var got hits
			err := l.find(text.Bytes(), !cr, &got, func(line []byte) (bool, error) { return re.Match(m.text(line)), nil })
			if err != nil {
				t.Fatal(err)
			}
			var want []uint32
			at := 0
			for line := range bytes.Lines(text.Bytes()) {
				if at += len(line); re.Match(m.text(line)) {
					want = append(want, uint32(at-1))
				}
			}
			if !slices.Equal(got.at, want) {
				t.Fatalf("%s, fold %t, cr %t in %q: %v, want %v", expr, fold, cr, text.String(), got.at, want)
			}
		}
	}
	if rows < 1000 {
		t.Errorf("%d rows of characters", rows)
	}
}

// TestLongLines compares what is found in long lines, the start of the match too, with regexp: with the automaton,
// without it by the row of characters, and by regexp alone.
func TestLongLines(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	rounds := 6
	if promise.UnderRace { // one takes 17 s there
		rounds = 1
	}
	for range rounds {
		var b bytes.Buffer
		for b.Len() < 3<<20 {
			b.WriteString([]string{"ab", "lorem ", "7", "é", "\xc3", "bcx", "\r", "K", " 12"}[random.IntN(9)])
		}
		if random.IntN(2) == 0 {
			b.WriteString("aaa123xyz")
		}
		line := b.Bytes()
		if random.IntN(2) == 0 {
			line = bytes.Map(func(c rune) rune {
				if c > 127 {
					return 'q'
				}
				return c
			}, line)
		}
		for _, expr := range []string{
			`a{3}\d{3}x`, `\bbcx\b`, `^ab`, `xyz$`, `[a-c]{9}x7K`, `a.*xyz`, `(lorem ){4}7`, `é\d{2}`, `q{6}`,
			`K\s\d+\w{30}q`, `nosuch`,
		} {
			m, err := compile(Pattern{Expr: expr})
			if err != nil {
				t.Fatal(err)
			}
			want := m.re.FindIndex(line)
			for _, way := range []string{"automaton", "row", "regexp"} {
				other := *m
				if way != "automaton" {
					other.auto = func() *automaton { return nil }
				}
				if way == "regexp" {
					other.linear = func() *linear { return nil }
				}
				var found []Line
				text := append(append([]byte("first\n"), line...), "\nlast\n"...)
				_, err := other.Scan(t.Context(), bytes.NewReader(text), Options{}, func(l Line) error {
					found = append(found, l)
					return nil
				})
				ok := err == nil && len(found) == 0 && want == nil
				if err == nil && len(found) == 1 && want != nil {
					ok = found[0].Number == 2 && found[0].Column == int64(want[0])+1
				}
				if !ok {
					t.Errorf("%s by %s: %v, %d found, want %v", expr, way, err, len(found), want)
				}
			}
		}
	}
}

// TestStartsInRunes compares the starts of matches in long lines of runes of several bytes, some of them cut, with
// those of regexp: the search for a start may begin within a rune.
func TestStartsInRunes(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for _, expr := range []string{`[^a]{5}m`, `.{3}x`, `[^a]{3}`, `\b.{4}m`, `^€a`, `€{2}[^m]{6}`, `(?:.m){3}`} {
		m, err := compile(Pattern{Expr: expr})
		if err != nil {
			t.Fatal(err)
		}
		m.sizes = tiny
		for range 4000 {
			var b bytes.Buffer
			for b.Len() < 60+random.IntN(120) {
				b.WriteString([]string{"€", "a", "m", "é", "x", "a", "€a", "\xe2\x82", "\xac", "𝄞"}[random.IntN(10)])
			}
			var found []Line
			_, err := m.Scan(t.Context(), bytes.NewReader(b.Bytes()), Options{Window: 8}, func(l Line) error {
				found = append(found, l)
				return nil
			})
			want := m.re.FindIndex(b.Bytes())
			if err != nil || (want == nil) != (len(found) == 0) || want != nil && found[0].Column != int64(want[0])+1 {
				t.Fatalf("%s in %q: %+v, %v; want %v", expr, b.Bytes(), found, err, want)
			}
		}
	}
}
