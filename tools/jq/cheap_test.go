package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCheap(t *testing.T) {
	cheap := []string{
		".", ".a", ".a.b[0]", ".[1:3]", `."x y"`, ".[]", ".a[]?", ".a, .b", ".[] | .a", "-.a", "-1",
		".a == 1", ".a + .b", ".a - 1", ".a * 2", "100 * .a", ".a / .b", ".a % 7", ".a and .b or .c", ".a // 0",
		"select(.a > 1)", ".[] | select(.a and (.b | not)) | {a, b: .c}", "map(.a)", "map(select(.n | startswith(\"x\")))",
		"length", "keys", "has(\"a\")", "type", "to_entries", "from_entries", "with_entries(.value |= tostring)", "map_values(length)",
		"first", "last", "first(.[])", "limit(3; .[])", "nth(2; .[])", "[.[] | .a]", "{a: 1, (.b): .c, \"d\": [.e]}", "{$x}",
		"group_by(.a)", "group_by(.a) | map({a: .[0].a, n: length})", "sort", "sort_by(.a, .b)", "unique", "unique_by(.a)", "min_by(.a)", "add", "add / length",
		"any", "all(.a)", "any(.[]; . == 1)", "if .a then .b elif .c then 1 else 2 end", "try .a catch .", ".a as $v | .b + $v", "$x", ".[$x]",
		`"\(.a)-\(.b | length)"`, "@csv", "[.a, .b] | @tsv", `@json "x\(.)"`, "tostring | length", "fromjson", "split(\",\")", "join(\", \")", "ascii_downcase",
		"test(\"abc\")", `select(.name | test("err(or)?"; "i"))`, "contains(\"x\")", "contains({a: [1]})", "index(\",\")", "ltrimstr(\"x\")", "range(100)", "[range(2; 10)]",
		".a = 1", ".a |= . + 1", ".a += 2", "del(.a, .b.c)", "del(.[].a)", "IN(1, 2)", "flatten", "reverse", "todate", "now | floor", "empty", "env", "$ENV",
		"debug", "input_filename", "(.a | .b) | (.c)", "isempty(.[])", "explode | implode", "[.[] | {(.a | tostring): 1}] | add",
	}
	dear := []string{
		"..", "def f: .; f", "reduce .[] as $x (0; . + $x)", "foreach .[] as $x (0; .)", "repeat(.)", "until(false; .)", "while(true; .)", "recurse", "walk(.)", "label $f | break $f",
		".a * .b", `"a" * 1e9`, ".[536870911] = 1", ".a[3] |= 1", "setpath([1]; 1)", "(., ., .) |= [., .]", "paths", "range(1e12)", "range(.n)", "limit(1e9; .)", "combinations",
		`gsub("a"; "b")`, `match("a")`, `scan("a")`, `test(.a)`, `test("\\pL{1000}x")`, `test("(a{50}){50}")`, "{a: .x[], b: .y[]}", ".[] + .[]", ".[.a]", ".[[1]]", ". as [$a] | $a", "$nope",
		"transpose", "implode2", "import \"a\" as a; .", "strftime(\"%1000000000d\")", "error(.)", "halt", "splits(\",\")", "INDEX(.a)", "tostream", "input", "@base32", "getpath(.a)",
		"[.,.]" + strings.Repeat("|[.,.]", 40), ". as $d | .[] | [$d, $d]", "." + strings.Repeat("|.", 600), strings.Repeat("[", 100) + strings.Repeat("]", 100),
		"tojson" + strings.Repeat("|tojson", 20), ".[] as $a | .[] as $b | .[] as $c | [$a, $b, $c]", "map(map(map(map(. + [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]))))",
	}
	say := func(filter string, size int) (bool, string) {
		p, err := parse(filter, map[string]json.RawMessage{"x": json.RawMessage(`"name"`)}, "in")
		if err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		return p.cheap([]byte("["+strings.Repeat("1,", size/2)+"1]"), job{})
	}
	for _, f := range cheap {
		if ok, why := say(f, 2<<10); !ok {
			t.Errorf("%.60s is taken for dear: %s", f, why)
		}
	}
	for _, f := range dear {
		if ok, _ := say(f, 2<<10); ok {
			t.Errorf("%.60s is taken for cheap", f)
		}
	}
	if ok, _ := say(".", smallText+1); ok {
		t.Error("a large text is taken for a small one")
	}
}

// The rule is true: what a filter that is taken for cheap makes stays within
// the bound that was computed for it, and it ends soon.
func TestCheapHolds(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		filter := filters(4).Draw(t, "filter")
		text := rapid.SliceOfN(values(3), 1, 4).Draw(t, "text")
		bounded(t, filter, strings.Join(text, "\n"), &taken)
	})
	least := 20
	if testing.Short() { // 20 draws, not 100
		least = 4
	}
	if taken < least {
		t.Errorf("only %d filters were taken for cheap: the test proves little", taken)
	}
}

type failing interface {
	Fatalf(format string, a ...any)
	Helper()
}

// bounded runs a filter where it is cheap, and compares with its bound.
func bounded(t failing, filter, text string, taken *int) {
	t.Helper()
	p, err := parse(filter, map[string]json.RawMessage{"x": json.RawMessage(`{"a":[1,"two"]}`), "s": json.RawMessage(`"a"`)}, "in")
	if err != nil {
		return
	}
	if ok, _ := p.cheap([]byte(text), job{}); !ok {
		return
	}
	code, err := p.compile(p.query)
	if err != nil {
		return
	}
	*taken++
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var in []any
	d := newDecoder(strings.NewReader(text))
	for {
		v, err := d.next(nil)
		if err != nil {
			break
		}
		in = append(in, v)
	}
	n := float64(len(text))
	bound, ok, _ := p.bound(p.query, bag{count: float64(len(in)), weight: n + 1, largest: n + 1})
	if !ok {
		t.Fatalf("%s: cheap, but without a bound", filter)
	}
	var count, weight, largest float64
	for _, v := range in {
		it := code.RunWithContext(ctx, v, p.values...)
		for {
			v, ok := it.Next()
			if !ok {
				break
			}
			if err, ok := v.(error); ok {
				if errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s on %s: cheap, but does not end", filter, text)
				}
				break
			}
			w := weigh(v)
			count, weight, largest = count+1, weight+w, max(largest, w)
		}
	}
	if count > bound.count || weight > bound.weight || largest > bound.largest {
		t.Fatalf("%s on %s gives %v results of %v bytes, the largest %v; the bound is %+v", filter, text, count, weight, largest, bound)
	}
}

// values generates JSON.
func values(depth int) *rapid.Generator[string] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-1", "1.5", "1e300", "12345678901234567890", `""`, `"a"`, `"a,b"`, `"日本"`, `"\u0001\""`, `"2015-03-05T23:51:47Z"`, `"[1,[2]]"`}),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(-100, 100000).Draw(t, "n")) }),
	)
	if depth == 0 {
		return scalar
	}
	inner := values(depth - 1)
	return rapid.OneOf(
		scalar,
		rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(inner, 0, 6).Draw(t, "array"), ",") + "]"
		}),
		rapid.Custom(func(t *rapid.T) string {
			var ms []string
			for i, v := range rapid.SliceOfN(inner, 0, 4).Draw(t, "object") {
				ms = append(ms, fmt.Sprintf("%q:%s", string(rune('a'+i)), v))
			}
			return "{" + strings.Join(ms, ",") + "}"
		}),
		rapid.SampledFrom([]string{`{"key":"a","value":1}`, `[{"key":"a"},{"name":"b"}]`, "[[],[],[]]", "[1,1,1,1,1,1,1,1]"}),
	)
}

// filters generates filters: mostly of what has a rule.
func filters(depth int) *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{
		".", ".a", ".b", ".a.b", ".[0]", ".[-1]", ".[]", ".[]?", ".[1:]", ".[:2]", ".a[]?", `.["a"]`, "1", "2.5", "-3", `"x"`, `"a,\"\\b"`, "null", "true", "[]", "{}", "$x", "$s", "$x.a",
		"length", "keys", "type", "to_entries", "from_entries", "add", "sort", "unique", "min", "max", "reverse", "flatten", "tostring", "tojson", "fromjson", "tonumber", "explode", "implode",
		"ascii_upcase", "first", "last", "any", "all", "not", "values", "strings", "arrays", "empty", "@csv", "@tsv", "@json", "@html", "@uri", "@sh", "@base64", "@base64d", "@text", "floor", "abs", "todate", "fromdate", "gmtime", "mktime",
		"split(\"\")", "split(\",\")", "join(\"--\")", "join(\"\")", "ltrimstr(\"a\")", "test(\"a+\")", "contains(\"a\")", "index(\"a\")", "indices(1)", "indices(\"a\")", "has(\"a\")", "range(7)", "range(2; 5)",
		"del(.a)", "del(.[].a, .b)", ".a = 1", ".a.b.c = 2", ".[] += 1", ".a //= 5", "env", "utf8bytelength", "trim", "input_filename", "debug", "toboolean", "infinite", "nan", "keys_unsorted",
	})
	if depth == 0 {
		return leaf
	}
	f := filters(depth - 1)
	form := func(format string, n int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			a := make([]any, n)
			for i := range a {
				a[i] = f.Draw(t, "part")
			}
			return fmt.Sprintf(format, a...)
		})
	}
	return rapid.OneOf(
		leaf, leaf,
		form("%s | %s", 2), form("%s | %s", 2), form("(%s), (%s)", 2), form("(%s) + (%s)", 2), form("(%s) - (%s)", 2), form("(%s) / (%s)", 2), form("(%s) %% (%s)", 2), form("(%s) * 3", 1), form("2.5 * (%s)", 1), form("-(%s)", 1),
		form("(%s) == (%s)", 2), form("(%s) < (%s)", 2), form("(%s) // (%s)", 2), form("(%s) and (%s)", 2), form("[%s]", 1), form("{a: (%s), b: (%s)}", 2), form("{(%s | tostring): (%s)}", 2), form("{a, $x, \"c\": (%s)}", 1),
		form("map(%s)", 1), form("select(%s)", 1), form("map_values(%s)", 1), form("with_entries(%s)", 1), form("sort_by(%s)", 1), form("group_by(%s)", 1), form("unique_by(%s)", 1), form("min_by(%s)", 1),
		form("first(%s)", 1), form("last(%s)", 1), form("add(%s)", 1), form("any(%s)", 1), form("any((%s); (%s))", 2), form("isempty(%s)", 1), form("limit(3; %s)", 1), form("skip(1; %s)", 1), form("nth(1; %s)", 1),
		form("if (%s) then (%s) else (%s) end", 3), form("if (%s) then (%s) end", 2), form("try (%s) catch (%s)", 2), form("(%s)?", 1), form("(%s) as $v | (%s), $v", 2), form("(%s) as $x | (%s)", 2), form(`"p\(%s)q\(%s)"`, 2), form(`@csv "\([%s])"`, 1), form(`@uri "\(%s)"`, 1),
		form(".a = (%s)", 1), form(".a |= (%s)", 1), form(".[] |= (%s)", 1), form(".[].a = (%s)", 1), form(".[] += (%s)", 1), form(".a -= (%s)", 1), form("(.a | .[]) |= (%s)", 1), form("contains(%s)", 1), form("inside(%s)", 1), form("index(%s)", 1), form("IN(%s)", 1), form("has(%s)", 1), form("join(%s)", 1), form("split(%s)", 1),
	)
}

// The rule neither panics nor is wrong on filters nobody thought of.
func FuzzCheap(f *testing.F) {
	for _, s := range []string{".", ".a|map(.b)", "group_by(.a)|map({a:.[0].a,n:length})", `.a as $v|"\(.b)\($v)"`, "{a,b:[.c[]]}", ".a|=(.+1)", "[.[]|tojson|tojson]", "(.a,.b)=1", "def f: .; f", `"\(`} {
		f.Add(s, `{"a":[1,{"b":"x"}],"c":null}`)
		f.Add(s, `[{"a":1,"b":[2,3]},{"a":"日本"}]`)
	}
	f.Fuzz(func(t *testing.T, filter, text string) {
		if len(filter) > 300 || len(text) > 2000 || !utf8.ValidString(text) || !json.Valid([]byte(text)) {
			return
		}
		taken := 0
		bounded(t, filter, text, &taken)
	})
}
