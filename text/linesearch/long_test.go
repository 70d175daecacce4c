package linesearch

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// TestLongLines compares what is found in long lines, the start of the match too, with regexp: with the automaton, and
// by regexp alone.
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
			expect.Must(t, err)
			want := m.re().FindIndex(line)
			for _, way := range []string{"automaton", "regexp"} {
				other := *m
				if way == "regexp" {
					other.auto = func() *automaton { return nil }
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
		expect.Must(t, err)
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
			want := m.re().FindIndex(b.Bytes())
			if err != nil || (want == nil) != (len(found) == 0) || want != nil && found[0].Column != int64(want[0])+1 {
				t.Fatalf("%s in %q: %+v, %v; want %v", expr, b.Bytes(), found, err, want)
			}
		}
	}
}
