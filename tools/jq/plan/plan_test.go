package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// described says a plan in words.
func described(p *Stream) string {
	if p == nil {
		return ""
	}
	s := strings.TrimSpace(strings.Join(p.Path, ".") + " " + []string{"flow", "held", "gather", "fold"}[p.Form])
	if p.From != 0 || p.To >= 0 {
		s += fmt.Sprintf(" %d:%d", p.From, p.To)
	}
	return s
}

func TestPlans(t *testing.T) {
	for _, c := range plantest.Filters {
		p, err := New(c.Filter, nil, "", false, false)
		expect.Must(t, err)
		expect.Equal(t, described(p.Stream), c.Stream, c.Filter)
	}
}

func TestWhichFiltersAreSafe(t *testing.T) {
	for filter, want := range map[string]bool{
		".": true, ".a.b[0]": true, ".[]": true, ".[] | select(.a > 1 and (.b | not)) | {a, b: .c}": true, "select(.a == 1) | [.a, .b]": true, `.[] | .a // "none"`: true,
		plantest.Doubled(1): true, plantest.Doubled(2): false, plantest.Doubled(5000 / 6): false, ".[] | " +
			plantest.Doubled(2): false,
		"." + strings.Repeat("|.", 1000): false, `"` + strings.Repeat("x", 200) + `"`: false,
		"length": false, "map(.a)": false, ".a[]": false, ".[1:2]": false, ".[][]": false, "def f: .; f": false, ".[] | def f: f; f": false, "..": false, "$ARGS": false, "first(.[])": false, "input_filename": false,
	} {
		p, err := New(filter, nil, "", false, false)
		if err != nil || p.Safe != want {
			t.Errorf("%.60s: safe %t, want %t (%v)", filter, !want, want, err)
		}
	}
	for i, of := range [][]string{plantest.Unsafe, plantest.Safe} {
		for _, filter := range of {
			if p, err := New(filter, nil, "", false, false); err != nil || p.Safe != (i == 1) {
				t.Errorf("%.60s: safe %t (%v)", filter, i == 0, err)
			}
		}
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
				expect.Must(b, err)
				if _, err := p.compile(p.query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
