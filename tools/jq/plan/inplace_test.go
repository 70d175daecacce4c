package plan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan/plantest"
)

// results are what comes out of a filter, with the words of its error.
func results(next func() (any, bool)) string {
	var b strings.Builder
	for {
		v, ok := next()
		if !ok {
			return b.String()
		}
		if err, failed := v.(error); failed {
			return b.String() + "error: " + err.Error()
		}
		text, err := gojq.Marshal(v)
		if err != nil {
			return b.String() + "not written: " + err.Error()
		}
		b.Write(append(text, '\n'))
	}
}

// builders are filters that build a value step by step, and whether they are rewritten.
var builders = map[string]bool{
	`reduce .[] as $x ({}; .["k\($x.n)"] = $x.a)`:             true,
	"reduce .[] as $x ([]; . + [$x.n])":                       true,
	"INDEX(.n)":                                               true,
	"INDEX(.[]; .a)":                                          true,
	`reduce .[] as $x ({}; .[$x.a | tostring] += 1)`:          true,
	"reduce .[] as $x ({}; .[$x.a | tostring] += [$x])":       true,
	"reduce .[] as $x ({}; .[$x.n | tostring] |= . + [$x.a])": true,
	"reduce .[] as $x ({}; . + {($x.n | tostring): $x.a})":    true,
	"reduce .[] as $x (.; .[0].a = $x)":                       true,
	"reduce .[] as $x ({n: 0}; .n += 1 | .all[.n] = $x)":      true,
	`reduce .[] as $x ({}; if .seen[$x | tojson] then . else .seen[$x | tojson] = true | .out += [$x] end)`: true,
	"reduce .[] as {n: $n, a: $a} ([]; .[$n] = $a)":                                                         true,
	"reduce .[] as $x (null; .a.b = . | .a.c = $x)":                                                         true,
	"reduce .[] as $x ({}; . as $all | .x = $all | .y += 1)":                                                true,
	"reduce .[] as $x ({}; select($x.n > 2) | .s += [$x.n])":                                                true,
	"[foreach .[] as $x ({}; .n += 1 | .l += [$x]; .n)]":                                                    true,
	"[foreach .[] as $x ({}; .l += [$x.a]; .l, {l: .l, n: 1})]":                                             true,
	`reduce .[] as $x (""; . + ($x.a | tojson))`:                                                            true,
	`reduce .[] as $x ({}; .[$x.a | tojson] += "\($x)" | .t += .u | .u += "u")`:                             true,
	"[foreach .[] as $x ([]; . + [$x]; .)]":                                                                 true,
	"reduce .[] as $x ([]; .[length] = [.[0], $x])":                                                         true,
	"reduce .[] as $x ({}; setpath([\"a\", $x.a]; $x.n))":                                                   true,
	"reduce .[] as $x ({}; .a = $x | .b = .a | .a.n = 1)":                                                   true,
	"reduce .[] as $x ([[]]; .[0] += [$x] | .[1] = .[0] | .[-1] += [1])":                                    true,
	"reduce .[] as $x ({}; .a -= 1 | .b *= 2 | .c //= $x | .d /= 1 | .e %= 2)":                              true,
	"reduce .[] as $x ({}; .a += {x: $x} | .b = [.a] | .a.y = 1)":                                           true,
	`reduce .[] as $x ({}; .a = {"b": .a, c: $x} | .a.c.n = 2)`:                                             true,
	"reduce .[] as $x (0; . + $x.n)":                                                                        false,
	"reduce .[] as $x ({}; .a = (1, 2))":                                                                    false,
	"reduce .[] as $x ({}; .[] += 1)":                                                                       false,
	"reduce .[] as $x ({}; .a |= empty)":                                                                    false,
	"reduce .[] as $x ({}; .a = 1 | select($x.n > 2))":                                                      false,
	"def path(f): 1; reduce .[] as $x ({}; .a = 1)":                                                         false,
	"[foreach .[] as $x ({}; .n += 1)]":                                                                     false,
	"reduce .[] as $x ({}; .a = first($x.a, 1))":                                                            false,
	"path(reduce .[] as $x (.; .[0]))":                                                                      false,
	"reduce .[] as $x ({}; (.a, .b) = 1)":                                                                   false,
	"reduce .[] as $x ([]; .[1:] = [$x])":                                                                   false,
	"[reduce .[] as $x ((1, []); .[0] = $x)]":                                                               true,
	"try (reduce .[] as $x ({}; .a.b += $x | .a[0] = 1)) catch .":                                           false,
	"reduce .[] as [$a] ?// $a ({}; .n += 1 | .l += [.n] | .l[$a] = 1)":                                     false,
	"reduce .[] as $x ([]; .[$x.n] = 1)":                                                                    true,
	"reduce .[] as $x ([]; .[-2] = 1)":                                                                      true,
	`reduce .[] as $x ({}; .a = {"b\($x.n)"} | .a.n = .)`:                                                   true,
	`reduce .[] as $x ({a: {}}; .b = {"\(("a", "b"))"} | .b.a.n = 1)`:                                       false,
	"reduce .[] as $x ({}; .a = $x | .a.n.n = 1)":                                                           true,
	"reduce .[] as $x ({}; .a[$x.a] = $x)":                                                                  true,
	"def length: 1, 2; reduce .[] as $x ({}; .a = length)":                                                  false,
}

func TestBuildersAreRewritten(t *testing.T) {
	for text, want := range builders {
		q, err := gojq.Parse(text)
		expect.Must(t, err)
		expect.Equal(t, strings.Contains(changingInPlace(q).String(), ownerVar), want, "%s: rewritten", text)
	}
}

// randomUpdate makes updates of the forms that are rewritten, with values that may be held elsewhere.
func randomUpdate(r *rand.Rand, depth int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	key := func() string {
		return pick(".a", ".b", ".a.b", ".a[0]", ".[$x.a]", ".[$x.n]", ".a[2 / 2]", `.["c"]`, ".b[-1]", ".a[.n]",
			".b.a[$x.n]", ".[0]", ".[1]")
	}
	value := func() string {
		return pick("1", "$x", "$x.a", "[$x]", "{a: $x}", ".", ".a", "[.b, 1]", "{b: .a, c: .}", "[.]", ".a.b", "$x.n",
			"(.a // [])", "[.[]?]", "{a: [], n: 0}", "[]", "{}", "(.a | tojson)",
			"([.a] | map(.))", "(. as $y | $y.b)", "(if $x then . else .a end)", `"t\(.n)"`, "(.a | [.])")
	}
	switch n := r.IntN(12); {
	case n < 3 && depth < 3:
		return randomUpdate(r, depth+1) + " | " + randomUpdate(r, depth+1)
	case n < 4 && depth < 3:
		return "if " + value() + " then " + randomUpdate(r, depth+1) + " else " +
			pick(".", randomUpdate(r, depth+1)) + " end"
	case n < 5 && depth < 3:
		return value() + " as $x | " + randomUpdate(r, depth+1)
	case n < 8:
		return key() + pick(" = ", " = ", " += ", " += ", " //= ", " -= ", " *= ") + value()
	case n < 9:
		return key() + " |= " + pick("(. + "+value()+")", "[., 1]", ".", "(.a = 1)", "{a: ., b: .}")
	case n < 10:
		return ". + " + value()
	case n < 11:
		return pick("setpath([\"a\", 0]; "+value()+")", "del(.a)", "{a: ., b: .b}", ".a", "[., .]", "map_values(.)",
			"to_entries", ".[0]")
	}
	return pick(".", "select($x)")
}

// A filter that changes values in place says what gojq says, and changes no value that it was given.
func TestInPlaceIsGojq(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var filters []string
	for text := range builders {
		filters = append(filters, text)
	}
	rewritten, worked := 0, 0
	for i := range 10_000 {
		text := filters[i%len(filters)]
		if i > 5*len(filters) {
			start := []string{"{}", "[]", "null", ".", ".[0]", "{a: .[0], b: .}", "(.[1], {})", `"t"`}[r.IntN(8)]
			source := []string{".[]", ".[]", "(.[] | objects)", "range(4)", "(.[], .)"}[r.IntN(5)]
			if update := randomUpdate(r, 0); r.IntN(3) > 0 {
				text = "[reduce " + source + " as $x (" + start + "; " + update + ")]"
			} else {
				extract := []string{".a", "., .b", "[.a, $x]", "{n: .n}"}[r.IntN(4)]
				text = "[foreach " + source + " as $x (" + start + "; " + update + "; " + extract + ")]"
			}
			text += []string{"", ", .", " | try . catch 1"}[r.IntN(3)]
		}
		q, err := gojq.Parse(text)
		expect.Must(t, err, text)
		plain, err := gojq.Compile(q)
		expect.Must(t, err)
		p, err := parse(text, nil, "")
		expect.Must(t, err)
		code, err := p.compile(p.query)
		expect.Must(t, err)
		if strings.Contains(changingInPlace(p.query).String(), ownerVar) {
			rewritten++
		}
		of := plantest.AnyJSON(r, 0)
		if r.IntN(3) > 0 {
			n := []string{"0", "1", "3", `"n"`}[r.IntN(4)]
			record := `{"a":` + plantest.AnyJSON(r, 3) + `,"n":` + n + "},"
			of = "[" + strings.Repeat(record, r.IntN(4)) + `{"a":"a","n":2}]`
		}
		v, err := decode.NewDecoder(strings.NewReader(of)).Next(nil)
		expect.Must(t, err)
		before, _ := gojq.Marshal(v)
		want := results(plain.Run(v).Next)
		for range 2 {
			expect.MustEqual(t, results(code.Run(v, p.values...).Next), want, "%s of %s", text, of)
		}
		if after, _ := gojq.Marshal(v); string(after) != string(before) {
			t.Fatalf("%s changed its input %s to %s", text, before, after)
		}
		if !strings.Contains(want, "error:") {
			worked++
		}
	}
	t.Logf("%d filters were rewritten, %d gave no error", rewritten, worked)
	if rewritten < 4000 || worked < 2000 {
		t.Error("too few to say something")
	}
}
