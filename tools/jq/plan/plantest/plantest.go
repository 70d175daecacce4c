// Package plantest has filters and JSON texts for the tests of plan, engine and jq.
package plantest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// maxFilter is the constant of that name in plan: longer filters are refused.
const maxFilter = 16 << 10

// Filters are filters with the stream plan they have; "" is one that needs the whole record.
var Filters = []struct {
	Filter string
	Stream string
}{
	{".[]", "flow"}, {".[].a", "flow"}, {".[]?", "flow"}, {".[] | .a", "flow"}, {". | .[] | .a | .", "flow"}, {".[].a?", "flow"}, {".[]|select(.n>3)", "flow"},
	{"def f: .a; .[] | f", "flow"}, {".[] as $x | $x", ""}, {". as $d | .[]", ""}, {".[], .[]", ""}, {".[] | (.n, .a)", "flow"}, {".[] // 1", ""},
	{".a[]", "a flow"}, {".a.b[] | .n", "a.b flow"}, {`.["a"][].n?`, "a flow"}, {`."a"[]`, "a flow"}, {".a | .[]", "a flow"}, {".a?[]", "a flow"}, {".[1:3][]", "flow 1:3"}, {".a[2:][] | .n", "a flow 2:-1"}, {".[:2] | .[]", "flow 0:2"},
	{"first(.[])", "held"}, {"limit(2; .[] | .n)", "held"}, {"limit(0; .[])", "held"}, {"limit(-1; .[])", ""}, {"limit(.n; .[])", ""}, {"first(.a[] | select(.n > 2))", "a held"}, {"first(.[]) | .a", "held"},
	{"map(.a)", "gather"}, {"map(.n, .a)", "gather"}, {"map(select(.n > 2))", "gather"}, {"map(empty)", "gather"}, {"[.[] | .n]", "gather"}, {"[.[].n]", "gather"}, {"[.a[]]", "a gather"}, {".a | map(.n)", "a gather"}, {".[1:2]", "gather 1:2"}, {".[:2]", "gather 0:2"}, {".[3:1]", "gather 3:1"}, {".[-2:]", "fold"}, {".[1:-1]", ""},
	{"[limit(2; .[])]", "gather"}, {"[first(.[])]", "gather"}, {"map(.a) | .[]", "held"}, {"map(.a) | map(.b)", "held"}, {"def map(f): 1; map(.a)", ""}, {"[.[]] | add", "fold"}, {".[1:] | map(.n)", "gather 1:-1"},
	{"length", "fold"}, {".a | length", "a fold"}, {"map(.n) | length", "fold"}, {"[.[] | select(.n > 2)] | length", "fold"}, {"map(select(.n > 2)) | length", "fold"}, {".[1:] | length", "fold 1:-1"}, {".[] | length", "flow"}, {"length | . + 1", "fold"}, {"def length: 1; length", ""}, {"[.a[] | .n] | length", "a fold"},
	{".[0]", "fold"}, {".[1000000].n", "fold"}, {"limit(20000; .[])", "held"}, {".[2].a", "fold"}, {".[1] | .n", "fold"}, {".a[1]", "a fold"}, {"first", "fold"}, {".[-1]", "fold"}, {".[9] | .a", "fold"}, {".[1][]", "fold"}, {".[0], .[1]", "fold"}, {".[.n]", ""},
	{".[][.n]", ""}, {".[].a[.n]", ""}, {`.a[]."\(.b)"`, ""}, {".[0][.n:]", ""}, {".[] | .[.n]", "flow"}, {".[][-1]", "flow"}, {`.[]["a"]`, "flow"}, {".[][1:-1]", "flow"},
	{".[] | select(.n == 2) | .a", "flow"}, {".[] | select(.a) | .n", "flow"}, {".a[] | select(.n > 1) | [.a]", "a flow"}, {"map(.a | select(.n) | .b)", "gather"}, {"select(.n > 2) | .a", ""}, {"select(.a.n)", ""},
	{"group_by(.n)", ""}, {"sort_by(.n)", ""}, {"add", "fold"}, {"unique", "fold"}, {"reduce .[] as $x (0; . + 1)", "held"}, {"last", "fold"}, {".", ""}, {".a", ""}, {"keys", ""}, {"to_entries", ""}, {"[.[] | .n] == []", ""}, {"..", ""}, {"any(.[]; .n)", "held"},
	{"group_by(.n) | map({n: .[0].n, l: length})", "fold"}, {"group_by(.a)[] | [.[0].a, length]", "fold"},
	{".a | group_by(.n) | map(length)", "a fold"}, {"map(.n) | add / length", "fold"}, {"[.[].n] | add", "fold"},
	{".a.b | add", "a.b fold"}, {"sort_by(.n) | .[:2]", "fold"}, {"sort_by(.n) | reverse | .[:2]", "fold"},
	{"[max_by(.n), min_by(.n).a]", "fold"}, {"unique_by(.n) | length", "fold"}, {".a | .[-1].n", "a fold"},
	{"{n: length, s: (map(.n) | add), l: last}", "fold"}, {"group_by(.n) | map(.)", ""}, {"group_by(.n) | .[0]", ""},
	{"sort_by(.n) | .[]", ""}, {"length as $n | $n", ""}, {"map(.n) | .", "gather"}, {"{n: length, a: .}", ""},
}

var (
	// Safe are filters that are safe in this process.
	Safe = []string{
		".", ".a", ".a.b", `.["a"]`, `."a".n`, ".[0]", ".a[2]", ".[1].a", ".a | .n", "1", "-1", "1.50", "100000000000000000000", `"x"`, "null", "true",
		".a == 1", ".n > 2.5", ".n >= .a", ".a != null", `.a < "x"`, ".a <= -1", ". == .a", ".n == 12345678901234567890123", ".a == 1 and .n > 2", ".a or .n", ".a and .n | not",
		"select(.a)", "select(.n > 2 and .n < 5) | .a", "select(.a | not)", "select(.a == 1) | {a, n}", ".a // .n", `.a // "none"`, "(.a // .n) // empty", "empty", "empty // 1", "empty or true",
		"{a}", `{a, "n": .n, x: 1}`, `{"a"}`, "{a: .a, a: .n}", "{a: .a.b}", "{}", "[.a]", "[.a, .n]", "[.a, empty, (.n | select(. > 2))]", "[empty]",
		"if .a then .n else .b end", "if .a then .n end", "if .n > 3 then 1 elif .a then 2 else {a} end", "if .n > 3 then 1 elif .a then 2 end", "if empty then 1 else 2 end", "(.a)", "(.a).b", "{a: 1}.a", `"x" == .a`, "-1 < .n",
	}
	// Unsafe are filters that are not.
	Unsafe = []string{
		".a?", ".a, .n", ".[-1]", ".[.n]", ".[1:]", ".a + 1", `"\(.a)"`, "map(.a)", "length", ". as $x | $x", "def f: .a; f", "def select(f): 1; select(.a)", "select(.a, .n)", "{(.a): 1}", "[.[]]", "-.a", "..",
		".a |= 1", "try .a", "@text", "first(.a)", "error", "$ARGS", "reduce . as $x (0; 1)",
	}
)

// Doubled doubles its input n times by pipes.
func Doubled(n int) string { return "." + strings.Repeat("|[.,.]", n) }

// Expensive are filters of these kinds that make or compare as much as those can, and many that are over the
// bound.
func Expensive() []string {
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	var all []string
	for _, n := range []int{1, 4, 5, 6, 16, 40} {
		all = append(all, Doubled(n), Doubled(n)+"|.==.", "["+Doubled(n)+"]==["+Doubled(n)+"]", "select("+Doubled(n)+"|.==.)",
			"if "+Doubled(n)+"|.==. then "+Doubled(n)+" else . end")
	}
	for _, n := range []int{2, 15, 30, 32, 33, 64, 120, 1000, 8000} {
		and := strings.TrimSuffix(strings.Repeat(".==. and ", n), " and ")
		all = append(all, list(n, "."), list(n, ".")+"==.", and, list(n/2, ".")+"|"+and, Doubled(3)+"|"+and, "."+strings.Repeat("|.", n), strings.Repeat("[", n)+"."+strings.Repeat("]", n),
			"."+strings.Repeat("|[.]", n), "."+strings.Repeat("|{a:.}", n), list(n, "{a:.,b:.}"), "{"+strings.TrimSuffix(
				strings.Repeat("a: .,", n), ",",
			)+"}", strings.Repeat("(", n)+"."+strings.Repeat(")", n),
			fmt.Sprintf("%q|", strings.Repeat("x", n))+list(n, "."), fmt.Sprintf("{%q: .}", strings.Repeat("x", n)), strings.Repeat("if . then ", n)+"."+strings.Repeat(" else . end", n), "."+strings.Repeat(" // .", n))
	}
	for i, f := range all {
		if len(f) > maxFilter {
			all[i] = "."
		} else if i%2 == 0 {
			all = append(all, ".[] | "+f)
		}
	}
	return all
}

// AnyJSON makes a text of values as the programs expect them, and some they do not.
func AnyJSON(r *rand.Rand, depth int) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	space := func() string { return pick("", "", "", " ", "\n", "\t ") }
	switch n := r.IntN(12); {
	case n < 4 && depth < 4:
		s := "["
		for i := range r.IntN(9) {
			if i > 0 {
				s += space() + ","
			}
			s += space() + AnyJSON(r, depth+1)
		}
		return s + space() + "]"
	case n < 8 && depth < 4:
		s := "{"
		for i := range r.IntN(5) {
			if i > 0 {
				s += space() + ","
			}
			s += space() + pick(
				`"a"`, `"a"`, `"b"`, `"n"`, `"n"`, `"\u0061"`, `"é"`, `""`,
			) + space() + ":" + space() + AnyJSON(r, depth+1)
		}
		return s + space() + "}"
	case n < 10:
		return pick("0", "1", "2", "3", "4", "5", "-0", "1.50", "1e3", "12345678901234567890123", "-7")
	default:
		return pick("null", "true", "false", `"x"`, `"é\n\u00e9"`, `""`, `"\ud800"`, "\"\xff\"",
			`"a long string that does not fit a small window, with [ and { and \" in it"`)
	}
}
