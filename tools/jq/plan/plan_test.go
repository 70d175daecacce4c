package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// described says a plan in words.
func described(p *Stream) string {
	if p == nil {
		return ""
	}
	s := strings.TrimSpace(strings.Join(p.Path, ".") + " " + []string{"flow", "gather", "count", "item", "fold"}[p.Form])
	if p.From != 0 || p.To >= 0 {
		s += fmt.Sprintf(" %d:%d", p.From, p.To)
	}
	if p.Most >= 0 {
		s += fmt.Sprintf(" most %d", p.Most)
	}
	return s
}

func TestPlans(t *testing.T) {
	for _, c := range plantest.Filters {
		p, err := New(c.Filter, nil, "", false, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := described(p.Stream); got != c.Stream {
			t.Errorf("%s: %q, want %q", c.Filter, got, c.Stream)
		}
	}
}

// The bound is true: no result is larger than the copies that were computed for it.
func TestCostHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	compared := 0
	for _, filter := range append(plantest.Expensive(), plantest.Directs...) {
		p, err := parse(filter, nil, "")
		if err != nil {
			t.Fatalf("%.80s: %v", filter, err)
		}
		c, d := cost{}, compileDirect(p.query)
		if d == nil {
			continue
		}
		if c = costOf(p.query); !c.bounded() {
			continue
		}
		for range 30 {
			v, err := decode.NewDecoder(strings.NewReader(plantest.AnyJSON(r, 0))).Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			w, a := d(v)
			if a != OneResult {
				continue
			}
			in, _ := gojq.Marshal(v)
			out, _ := gojq.Marshal(w)
			compared++
			// Each step adds the brackets and commas of what it makes, which pipes copy too.
			if most := c.copies*max(len(in), 64) + 16*c.steps; len(out) > most {
				t.Fatalf("%.80s makes %d bytes of %d; the bound is %d (%+v)", filter, len(out), len(in), most, c)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d results were compared", compared)
	}
}

func TestWhichFiltersAreBounded(t *testing.T) {
	for filter, want := range map[string]bool{
		".": true, ".a.b[0]": true, ".[]": true, ".[] | select(.a > 1 and (.b | not)) | {a, b: .c}": true, "select(.a == 1) | [.a, .b]": true, `.[] | .a // "none"`: true,
		plantest.Doubled(5): true, plantest.Doubled(6): false, plantest.Doubled(5000 / 6): false, ".[] | " +
			plantest.Doubled(6): false,
		"." + strings.Repeat("|.", 1000): false, `"` + strings.Repeat("x", 3000) + `"`: false,
		"length": false, "map(.a)": false, ".a[]": false, ".[1:2]": false, ".[][]": false, "def f: .; f": false, ".[] | def f: f; f": false, "..": false, "$ARGS": false, "first(.[])": false, "input_filename": false,
	} {
		p, err := New(filter, nil, "", false, false)
		if err != nil || p.Bounded() != want {
			t.Errorf("%.60s: bounded %t, want %t (%v)", filter, !want, want, err)
		}
	}
	if p, err := New(".[] | .a", nil, "", true, false); err != nil || p.Bounded() {
		t.Errorf("slurped, .[] | .a is all of one filter, which is not direct (%v)", err)
	}
}

// What it takes to parse and compile a filter, which every call does twice.
func BenchmarkCompile(b *testing.B) {
	for _, filter := range []string{
		".", ".[] | select(.line == 4711 and .score > 0.95) | .file", "group_by(.language) | map({language: .[0].language, n: length}) | sort_by(.n) | reverse | .[:3]",
		`to_entries | map(select(.value | type == "string" and test("^[a-z]+$"; "i")) | {(.key): (.value | ascii_upcase)}) | add // {}`,
		`def f(x): x | if type == "array" then map(f(.)) elif type == "object" then with_entries(.value |= f(.)) else . end; walk(if type == "number" then . + 1 else . end) | f(.)`,
	} {
		b.Run(filter, func(b *testing.B) {
			for b.Loop() {
				p, err := parse(filter, nil, "in")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.compileFilter(p.query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
