package jq

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/plan"
)

const (
	// Keys stand in order, since gojq walks objects in the order of their keys, and jq in that of the text.
	records = `[{"id":3,"name":"carol","on":true,"price":2.5,"sub":{"a":1},"tags":["x","y"]},
{"id":1,"name":"Alice","on":false,"price":10,"sub":{"a":2,"b":[1,2,3]},"tags":[]},
{"id":2,"name":"bob","on":true,"price":null,"tags":["y"]}]`
	lines   = "{\"level\":\"info\",\"msg\":\"start\",\"n\":1}\n{\"level\":\"error\",\"msg\":\"it broke: code=17\",\"n\":2}\n{\"level\":\"info\",\"msg\":\"end\",\"n\":3}\n"
	object  = `{"a":"x","b":{"c":[1,2,{"d":null}]},"e":{},"n":-7,"s":"caf\u00e9 \"q\" \\ <&> \u2028","t":true,"z":[[1,2],[3]]}`
	numbers = `[3,1,2,10,-5,0,2.5,100000000000,1000,0.001]`
	words   = `["foo bar","Foo","a,b,c","","x\ty","日本語","\u001b[1m","a.b.c","2015-03-05T23:51:47Z"]`
	mixed   = `[null,true,false,0,-1,1.5,"a","A","",[],[1],{},{"a":1}]`
)

// comparison is a program and what it runs on.
type comparison struct {
	filter string
	text   string
	flags  string // of jq: -r, -s, -R
}

// comparisons are run by jq itself too.
var comparisons = []comparison{
	{".", object, ""}, {".", records, ""}, {".", lines, ""}, {".", mixed, ""}, {".", words, ""},
	{".a", object, ""}, {".b.c", object, ""}, {".b.c[2].d", object, ""}, {".nope", object, ""}, {".nope.deeper", object, ""},
	{`."a"`, object, ""}, {`.["a"]`, object, ""}, {`.b["c"][0]`, object, ""}, {".b?", mixed, ""}, {".[]?", object, ""},
	{".[]", records, ""}, {".[].name", records, ""}, {".[].name", records, "-r"}, {".[0]", records, ""}, {".[-1].id", records, ""},
	{".[1:]", numbers, ""}, {".[:2]", numbers, ""}, {".[-2:]", numbers, ""}, {".[2:4]", numbers, ""}, {".[:-1]", words, ""},
	{".[0][1:3]", words, ""}, {".[5][0:2]", words, ""}, {".[] | .[2:]?", words, ""},
	{".. | numbers", object, ""}, {"..", mixed, ""}, {"[..]", object, ""}, {".. | .a?", records, ""}, {"[.. | scalars]", records, ""},
	{".[] | select(.on)", records, ""}, {".[] | select(.id > 1) | .name", records, ""}, {"map(select(.price != null))", records, ""},
	{"map(.id)", records, ""}, {"map({id, name})", records, ""}, {"[.[] | {(.name): .id}] | add", records, ""}, {"map(has(\"sub\"))", records, ""},
	{"map(.tags | length)", records, ""}, {"map(.tags[])", records, ""}, {".[] | {id, tag: .tags[]}", records, ""}, {".[] | [.id, .name] | @csv", records, "-r"},
	{".[] | [.id, .name] | @tsv", records, "-r"}, {".[] | @json", words, "-r"}, {".[] | @text", mixed, "-r"}, {".[] | @html", words, "-r"},
	{".[] | @uri", words, "-r"}, {".[] | @base64", words, "-r"}, {".[] | @base64 | @base64d", words, ""}, {".[0:2] | @sh", words, "-r"},
	{`.[] | "\(.id): \(.name)"`, records, "-r"}, {`@base64 "x\(.a)y"`, object, ""}, {`.[] | "\(.)"`, mixed, ""},
	{"sort", numbers, ""}, {"sort", mixed, ""}, {"sort_by(.id)", records, ""}, {"sort_by(.on, .id)", records, ""}, {"sort_by(-.id)", records, ""},
	{"group_by(.on)", records, ""}, {"group_by(.on) | map({on: .[0].on, n: length})", records, ""}, {"unique", mixed, ""}, {"unique_by(.on)", records, ""}, {"unique_by(length)", words, ""},
	{"min, max", numbers, ""}, {"min_by(.id), max_by(.id)", records, ""}, {"add", numbers, ""}, {"add", words, ""}, {"add / length", "[1,2,3]", ""},
	{"any, all", "[true,false]", ""}, {"any(. > 5), all(. > -10)", numbers, ""}, {"map(. > 1) | any", numbers, ""}, {"any(.[]; . == 2)", numbers, ""},
	{"length", object, ""}, {".[] | length?", mixed, ""}, {"keys", object, ""}, {"keys", records, ""}, {"keys_unsorted | length", object, ""}, {"[.[] | type]", mixed, ""},
	{"to_entries", object, ""}, {"to_entries | from_entries", object, ""}, {"with_entries(.key |= \"k_\" + .)", object, ""}, {"with_entries(select(.value | type == \"number\"))", object, ""},
	{"map_values(type)", object, ""}, {"map_values(empty)", object, ""}, {"del(.a)", object, ""}, {"del(.b.c[0,2], .z)", object, ""}, {"del(.[] | select(.on))", records, ""}, {"delpaths([[\"a\"],[\"b\",\"c\"]])", object, ""},
	{".a = 1", object, ""}, {".a |= ascii_upcase", object, ""}, {".[].id += 10", records, ""}, {".[] |= (.id | tostring)", records, ""}, {".x.y.z = [1]", object, ""}, {".n -= 3 | .n", object, ""}, {".b.c[5] = 1 | .b.c", object, ""},
	{".nope //= 5 | .nope", object, ""}, {".[] | .price // \"none\"", records, ""}, {".a // empty, .nope // empty", object, ""}, {"first(.[] | select(. > 2))", numbers, ""},
	{"if .n < 0 then \"neg\" elif .n == 0 then \"zero\" else \"pos\" end", object, ""}, {".[] | if . then 1 else 2 end", mixed, ""}, {".[] | not", mixed, ""},
	{"[.[] | . == null or . == false]", mixed, ""}, {"[.[] | (. != null) and (. != false)]", mixed, ""}, {"[.[] < 2]", mixed, ""}, {"[.[] >= \"a\"]", mixed, ""},
	{"1 + 2 * 3 - 4 / 2 % 3", "null", ""}, {".n * 2, .n / 2, .n % 4, -.n", object, ""}, {".[] | . * 2?", numbers, ""}, {"[1,2,3] - [2]", "null", ""}, {"{a:1} + {b:2} * {b:{c:3}}", "null", ""},
	{"\"x\" * 3, \"a,b\" / \",\"", "null", ""}, {"[.[] | floor, sqrt?]", "[4,2.5]", ""}, {"pow(2;10), log2", "8", ""}, {"[.[] | tostring]", mixed, ""}, {"[.[] | tojson]", mixed, ""}, {"map(tojson | fromjson)", mixed, ""},
	{"[.[] | tonumber?]", `["1","2.5","x",3]`, ""}, {"[.[] | ascii_downcase, ascii_upcase]", words, ""}, {".[2] | split(\",\")", words, ""}, {"map(split(\".\"))", words, ""}, {"[.[2], .[7]] | join(\"-\")", words, ""},
	{"map(startswith(\"F\"), endswith(\"c\"))", words, ""}, {"map(ltrimstr(\"F\"), rtrimstr(\"c\"))", words, ""}, {"map(explode | implode)", words, ""}, {"map(test(\"o+\"))", words, ""}, {"map(test(\"foo\"; \"i\"))", words, ""},
	{"[.[] | match(\"o+\") | .offset, .length, .string]", words, ""}, {"[.[0] | match(\"o\"; \"g\").offset]", words, ""}, {".[] | capture(\"(?<a>[a-z]+)[.,](?<b>.)\")", words, ""}, {"[.[] | scan(\"[a-z]\")]", words, ""},
	{"map(sub(\"o\"; \"0\"))", words, ""}, {"map(gsub(\"[aeiou]\"; \"<\\(.)>\"))", `["xyz"]`, ""}, {"map(gsub(\"(?<v>[aeiou])\"; \"<\\(.v)>\"))", words, ""}, {"[.[0] | splits(\" +\")]", words, ""}, {".[0] | split(\" *b\"; null)", words, ""},
	{"map(utf8bytelength)", words, ""}, {"map(length)", words, ""}, {"map(indices(\"o\"))", words, ""}, {"indices(2), index(2), rindex(2)", "[1,2,1,2]", ""}, {"[.[] | contains(\"o\")]", words, ""}, {"contains({a:\"x\"})", object, ""},
	{"inside([1,2,3])", "[1,2]", ""}, {"flatten, flatten(1)", "[1,[2,[3,[4]]]]", ""}, {"[range(5)], [range(2;5)], [range(0;10;3)]", "null", ""}, {"reverse", numbers, ""}, {"transpose", "[[1,2],[3]]", ""},
	{"paths", object, ""}, {"[paths(type == \"number\")]", object, ""}, {"[leaf_paths]", records, ""}, {"getpath([\"b\",\"c\",0])", object, ""}, {"[getpath([\"b\",\"x\",0])]", object, ""}, {"setpath([\"q\",\"r\"]; 1) | .q", object, ""},
	{"[tostream]", object, ""}, {"fromstream(tostream)", object, ""}, {"[1|truncate_stream([[0],1],[[1,0],2],[[1,0]],[[1]])]", "null", ""},
	{"reduce .[] as $x (0; . + $x)", "[1,2,3]", ""}, {"[foreach .[] as $x (0; . + $x)]", "[1,2,3]", ""}, {"[foreach .[] as $x (0; . + $x; [$x, .])]", "[1,2,3]", ""}, {"[limit(3; .[])]", numbers, ""}, {"first, last", numbers, ""}, {"nth(2), nth(1; .[])", numbers, ""},
	{"[.[] as [$a, $b] | {a: $a, b: $b}]", "[[1,2],[3]]", ""}, {".[] as {id: $i, name: $n} | \"\\($i)\\($n)\"", records, ""}, {". as $d | .[] | select(.id == ($d | map(.id) | max)) | .name", records, ""},
	{"[recurse(if . < 3 then . + 1 else empty end)]", "0", ""}, {"[recurse(. * 2; . < 20)]", "1", ""}, {"[.[] | until(. > 100; . * 2 + 1)]", "[1,50]", ""}, {"[while(. < 50; . * 2)]", "1", ""}, {"[limit(4; repeat(. * 2))]", "1", ""},
	{"walk(if type == \"number\" then . + 1 else . end)", object, ""}, {"def f(x): x * 2; [.[] | f(.)]", numbers, ""}, {"def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; [.[] | fac]", "[1,5,10]", ""}, {"def f($a; $b): $a + $b; f(1; 2)", "null", ""},
	{"try error(\"x\") catch .", "null", ""}, {"[.[] | try (. + 1) catch \"bad\"]", mixed, ""}, {"[.[] | (1 / .)?]", "[1,0,2]", ""}, {".[] | tonumber", `["1","x","3"]`, ""}, {"error(\"boom\")", "null", ""}, {"label $out | .[] | if . > 5 then ., break $out else . end", numbers, ""},
	{"[splits(\", \")]", `"a, b, c"`, ""}, {"input_line_number | type", "1", ""}, {"env | type", "null", ""}, {"[combinations]", "[[1,2],[3,4]]", ""}, {"[combinations(2)]", "[0,1]", ""}, {"isvalid(1)?, isinfinite, isnan", "1", ""}, {"infinite, -infinite | . > 1", "null", ""}, {"[nan] | sort | length", "null", ""},
	{"todate", "1425599621", ""}, {"fromdate", `"2015-03-05T23:51:47Z"`, ""}, {".[8] | fromdateiso8601", words, ""}, {"strftime(\"%Y-%m-%d %H:%M\")", "1425599621", ""}, {"gmtime | mktime", "1425599621", ""}, {"strptime(\"%Y-%m-%dT%H:%M:%SZ\") | mktime", `"2015-03-05T23:51:47Z"`, ""},
	{"select(.level == \"error\") | .msg", lines, "-r"}, {".n", lines, ""}, {"[.n, .level]", lines, ""}, {"map(.n) | add", lines, "-s"}, {"group_by(.level) | map({level: .[0].level, n: length})", lines, "-s"}, {"length", lines, "-s"}, {".", "", "-s"}, {".", "1 [2] \"x\"", "-s"},
	{".", lines, "-R"}, {"fromjson.msg", lines, "-R"}, {"length", "a\nb\n\nc", "-R"}, {"split(\"\\n\") | length", "a\nb\n\nc\n", "-sR"}, {"capture(\"(?<k>[a-z]+)=(?<v>[0-9]+)\")", "a=1\nb=2\n", "-R"}, {"select(test(\"ERR\"))", "ok\nERR 1\nok\nERR 2\n", "-rR"},
	{"IN(1,2)", "2", ""}, {"[.[] | IN(2,10)]", numbers, ""}, {"INDEX(.id) | keys", records, ""}, {"[JOIN({\"1\":\"one\"}; .[]; tostring)]", "[1]", ""}, {"@text \"\\(1+1)\"", "null", ""}, {"ltrimstr(1)", `"x"`, ""}, {"splits(\"a\")", "1", ""}, {"$__loc__ | .line", "null", ""},
	{".[0] |= empty", "[1,2,3]", ""}, {"(.[] | select(. > 2)) |= 0", numbers, ""}, {"to_entries | map(select(.value > 2).key)", numbers, ""}, {"limit(0; 1,2)", "null", ""}, {"[.[] | round, ceil, fabs]", "[1.5,-1.5,2.4]", ""}, {"tojson", "1.0", ""}, {". # digits", "[1.0, 1.50, 1e2, 1E+2]", ""}, {". + 0", "[1.50,1e2] | .[]", ""},
	{"implode", "[65,128512]", ""}, {"getpath([\"a\",0])", `{"a":{}}`, ""}, {"@json \"x\\([1,\"a\"])\"", "null", ""}, {"bsearch(2), bsearch(9)", "[1,2,3]", ""}, {"significand, logb, gamma, frexp", "10", ""}, {"modf", "3.25", ""}, {"min_by(.x)", "[]", ""}, {"tojson|length", object, ""}, {"halt", "1 2", ""}, {"., halt_error", "1 2", ""},
}

// differences between jq 1.6 and gojq 0.12.20 that are known, by program; the reason is the value.
var differences = map[string]string{
	"$__loc__ | .line":                "gojq does not know it",
	"ltrimstr(1)":                     "an error as in jq 1.8; jq 1.6 passes the input on",
	"limit(0; 1,2)":                   "no result as in jq 1.7; a defect of jq 1.6",
	"tojson":                          "numbers keep their digits: 1.0",
	". # digits":                      "numbers keep their digits: 1.50, 1e2",
	"significand, logb, gamma, frexp": "gamma is the function itself, not its logarithm",
	"., halt_error":                   "it ends the run, as the manual says; jq 1.6 goes on with the next record",
}

// said is what jq says of a comparison.
type said struct {
	out    string
	failed bool
	errors string
}

// ask runs jq on one comparison.
func ask(t *testing.T, program string, c comparison) said {
	args := []string{"-S", "-c"}
	for _, f := range strings.TrimPrefix(c.flags, "-") {
		args = append(args, "-"+string(f))
	}
	cmd := exec.CommandContext(t.Context(), program, append(args, c.filter)...)
	cmd.Stdin = strings.NewReader(c.text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{strings.TrimSuffix(string(out), "\n"), err != nil, stderr.String()}
}

// runsHere says whether the tool, as it is, runs a comparison in its own process.
func runsHere(c comparison) bool {
	p, err := plan.New(c.filter, nil, "", strings.Contains(c.flags, "s"), strings.Contains(c.flags, "R"))
	return err != nil || p.Safe
}

func TestCompareWithJQ(t *testing.T) {
	program := peer.Find(t, "jq")
	var compared atomic.Int32
	t.Run("programs", func(t *testing.T) {
		for _, c := range comparisons {
			t.Run(c.filter+" "+c.flags, func(t *testing.T) {
				t.Parallel()
				a := m{"filter": c.filter}
				for _, f := range strings.TrimPrefix(c.flags, "-") {
					a[map[rune]string{'r': "raw", 's': "slurp", 'R': "text"}[f]] = true
				}
				want := ask(t, program, c)
				reason, known := differences[c.filter]
				differs := false
				var first string
				for i, w := range ways {
					if w.name == "as it is" && !runsHere(c) {
						continue // in a worker, as before
					}
					r, err := run(t, w.tool, c.text, a)
					got := joined(r.rows)
					if i == 0 {
						first = got
					} else if got != first {
						t.Errorf("%s gives\n%s\nbut a worker\n%s", w.name, got, first)
					}
					if got != want.out || (err != nil) != want.failed {
						differs = true
						if !known {
							t.Errorf("%s:\n%s (%v)\njq:\n%s (%v %s)", w.name, got, err, want.out, want.failed, want.errors)
						}
					}
				}
				if known && !differs {
					t.Errorf("no difference any more (%s): remove it from the list", reason)
				}
				if !known {
					compared.Add(1)
				}
			})
		}
	})
	t.Logf("%d programs give what jq gives; %d differ as listed", compared.Load(), len(differences))
	if compared.Load() < 150 {
		t.Errorf("only %d programs were compared", compared.Load())
	}
}
