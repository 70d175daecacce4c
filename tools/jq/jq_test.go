package jq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestResults(t *testing.T) {
	tests := []struct {
		name, text string
		args       m
		want       string
	}{
		{"identity", `{"b":[1,2],"a":"x"}`, m{"filter": "."}, `{"a":"x","b":[1,2]}`},
		{"one a line", `[1,[2],{"a":3}]`, m{"filter": ".[]"}, "1\n[2]\n{\"a\":3}"},
		{"ndjson", "{\"a\":1}\n{\"a\":2}\n", m{"filter": ".a"}, "1\n2"},
		{"concatenated", `{"a":1}{"a":2} {"a":3}`, m{"filter": ".a"}, "1\n2\n3"},
		{"a number alone", "42", m{"filter": "."}, "42"},
		{"numbers", "1\n2\n3", m{"filter": "."}, "1\n2\n3"},
		{"slurp", "1\n2\n3\n", m{"filter": "add", "slurp": true}, "6"},
		{"slurp of one array", "[1,2]", m{"filter": ".", "slurp": true}, "[[1,2]]"},
		{"slurp of nothing", "", m{"filter": ".", "slurp": true}, "[]"},
		{"raw", `["a\tb","c\nd",1,["e"]]`, m{"filter": ".[]", "raw": true}, "a\tb\nc\nd\n1\n[\"e\"]"},
		{"text", "one\ntwo\r\n\nlast", m{"filter": ".", "text": true}, "\"one\"\n\"two\\r\"\n\"\"\n\"last\""},
		{"text, slurped", "one\ntwo\n", m{"filter": `split("\n")`, "text": true, "slurp": true}, `["one","two",""]`},
		{"text, CSV", "a,b\n1,2\n", m{"filter": `split(",")[0]`, "text": true, "raw": true}, "a\n1"},
		{"args", `{"a":1}`, m{
			"filter": `$x + .a, $y.z, $ARGS.named.x`, "args": m{"x": 41, "y": m{"z": []int{1}}},
		}, "42\n[1]\n41"},
		{"digits", "[12345678901234567890, 0.1000, 1e1000, -0, 3.0, 100000000000000000000000001]", m{"filter": ".[]"},
			"12345678901234567890\n0.1000\n1e1000\n-0\n3.0\n100000000000000000000000001"},
		{"big integers", "12345678901234567890", m{"filter": ". + 1, . * 10"}, "12345678901234567891\n123456789012345678900"},
		{"digits of args", "null", m{
			"filter": "$n", "args": map[string]any{"n": rawNumber("12345678901234567890")},
		}, "12345678901234567890"},
		{"environment", "null", m{"filter": "env, $ENV, env.HOME"}, "{}\n{}\nnull"},
		{"debug and stderr", "1", m{"filter": `debug, stderr, debug("x")`}, "1\n1\n1"},
		{"halt ends it all", "1 2 3", m{"filter": `., (if . == 2 then halt else empty end)`}, "1\n2"},
		{"source's name", "1", m{"filter": "input_filename"}, `"in"`},
		{"lone surrogate", `"\ud800x"`, m{"filter": "."}, `"` + "\uFFFDx" + `"`},
		{"invalid UTF-8", "[\"a\xffb\"]", m{"filter": "."}, `["a` + "\uFFFD" + `b"]`},
		{"offset", "[0,1,2,3,4]", m{"filter": ".[]", "offset": 3}, "3\n4"},
		{"limit", "[0,1,2,3,4]", m{"filter": ".[]", "offset": 1, "limit": 2}, "1\n2"},
		{"slurped text that is not UTF-8", "[\"a\xff\"]", m{"filter": ".[-1]", "slurp": true}, "[\"a\uFFFD\"]"},
		{"limited, then counted", "[0,1,2,3]", m{"filter": "[limit(2; .[])] | length"}, "2"},
		{"elements, then an object", `[1,2]{"a":3}[4]`, m{"filter": ".[]"}, "1\n2\n3\n4"},
		{"elements with a definition", `[1,2]`, m{"filter": "def f: . + 1; .[] | f"}, "2\n3"},
		{"elements, optional", `[1,{"a":2}]3`, m{"filter": ".[]?.a?"}, "2"},
		{"deep", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), m{"filter": "[..] | length"}, "9000"},
	}
	for _, test := range tests {
		for _, w := range ways {
			t.Run(test.name+"/"+w.name, func(t *testing.T) {
				r, err := run(t, w.tool, test.text, test.args)
				expect.Must(t, err)
				// complete, as jq has it
				if text := strings.Trim(test.text, "0123456789 \n"); text == "" && len(r.notes) > 0 && test.text != "" {
					t.Errorf("notes: %q", r.notes)
				}
				expect.Equal(t, joined(r.rows), test.want)
			})
		}
	}
}

type rawNumber string

func (n rawNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

func TestPages(t *testing.T) {
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	from := folder(t, map[string]string{"in": text.String()})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			a := any(m{"source": "in", "filter": ".n"})
			var got []string
			for pages := 0; ; pages++ {
				r, err := call(t.Context(), w.tool, from, a, 4)
				expect.Must(t, err)
				if r.first != int64(len(got)) || r.total != 10 || r.counts["results"] != 10 {
					t.Errorf("page %d: first %d, total %d, counted %v", pages, r.first, r.total, r.counts)
				}
				got = append(got, r.rows...)
				if r.next == nil {
					break
				}
				if r.next.Tool != "jq" || pages > 3 {
					t.Fatalf("next: %v", r.next)
				}
				a = r.next.Args
			}
			expect.Equal(t, strings.Join(got, ""), "0123456789")
		})
	}
}

// A row tells the call that keeps it whole; save keeps all.
func TestSave(t *testing.T) {
	from := folder(t, map[string]string{"in": `["a","b","c"]`})
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			r, err := call(t.Context(), w.tool, from, m{"source": "in", "filter": ".[]", "raw": true}, 2)
			expect.Must(t, err)
			r, err = call(t.Context(), w.tool, from, r.more[1].Args, 2)
			expect.Must(t, err)
			if r.String() != "b\n" || !r.kept || len(r.rows) > 0 || r.next != nil {
				t.Errorf("kept %q, next %v", r.String(), r.next)
			}
			r, err = call(t.Context(), w.tool, from, m{"source": "in", "filter": ".[]", "save": true}, 2)
			expect.Must(t, err)
			if diff := cmp.Diff("\"a\"\n\"b\"\n\"c\"\n", r.String()); diff != "" || r.next != nil {
				t.Errorf("%s; next %v", diff, r.next)
			}
			expect.Same(t, r.origin, []string{"in"})
		})
	}
}

func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 5000)
	tests := []struct {
		name, text string
		args       m
		rows       string
		want       []string // each stands in the error
	}{
		{"does not parse", "1", m{"filter": ".a | | .b"}, "", []string{
			`unexpected token "|"`, "\n    .a | | .b\n         ^",
		}},
		{"ends too early", "1", m{"filter": ".a | ("}, "", []string{"unexpected EOF", "\n    .a | (\n          ^"}},
		{"second line", "1", m{"filter": ".a |\n  .b }"}, "", []string{`unexpected token "}"`, "\n      .b }\n         ^"}},
		{"long filter", "1", m{"filter": "." + long + " | }"}, "", []string{`unexpected token "}"`, "…xxx", "x | }\n", "^"}},
		{"too long a filter", "1", m{
			"filter": strings.Repeat("1+", 100_000) + "1",
		}, "", []string{"filter is 200001 bytes long"}},
		{"empty", "1", m{"filter": " "}, "", []string{"missing query"}},
		{"only a comment", "1", m{"filter": "# x"}, "", []string{"missing query"}},
		{"no such function", "1", m{"filter": `"foo(" | foo(1) | foo`}, "", []string{
			"function not defined: foo/1", "\n             ^",
		}},
		{"no such variable", "1", m{"filter": `. + $nope`}, "", []string{"variable not defined: $nope", "\n        ^"}},
		{"input", "1 2", m{"filter": "[., input]"}, "", []string{
			"input and inputs are not available", `"slurp": true`, "(with \"text\" too: one string)\n", "\n        ^",
		}},
		{"inputs", "1 2", m{"filter": "[inputs]"}, "", []string{"input and inputs are not available"}},
		{"import", "1", m{"filter": `import "a" as a; .`}, "", []string{"import and include are not available", "\n    ^"}},
		{"bad name in args", "1", m{"filter": ".", "args": m{"a-b": 1}}, "", []string{"cannot be the name of a variable"}},
		{"a record fails", "1\n{}\n3\n[]\n", m{"filter": ". + 1"}, "2\n4", []string{
			"record 1: cannot add: object ({}) and number (1)", "failed on 2 of 4 records",
		}},
		{"a record fails after results", `[1,"a",3]`, m{"filter": ".[] | . + 1"}, "2", []string{
			"record 0, element 1: cannot add", "after 1 result of this record",
		}},
		{"the record after an array that failed", `[1,"a",3][5]`, m{"filter": ".[] | . + 1"}, "2\n6", []string{
			"record 0, element 1", "the other 1 record went well",
		}},
		{"materialised, too", `[1,"a",3]`, m{"filter": ". as $a | .[] | . + 1"}, "2", []string{
			"record 0: cannot add", "after 1 result",
		}},
		{"error with a value", "1", m{"filter": `error({a: 1})`}, "", []string{`record 0: error: {"a":1}`}},
		{"halt_error", "1 2", m{"filter": `., halt_error`}, "1", []string{"record 0: halt error: 1"}},
		{"halt_error among elements", "[1,2] 3", m{"filter": `.[] | ., halt_error`}, "1", []string{
			"record 0, element 0: halt error: 1",
		}},
		{"cut off, slurped", "{\"a\":1}\n{\"a", m{"filter": "map(.a) | add", "slurp": true}, "", []string{"cut off at byte"}},
		{"long error", "1", m{"filter": `error("` + long + `")`}, "", []string{"xxx…"}},
		{"cut off", `[{"a":1},{"a":`, m{"filter": "."}, "", []string{"cut off at byte 14", "grep and slice"}},
		{"cut off, elements", `[{"a":1},{"a":`, m{"filter": ".[].a"}, "1", []string{"cut off at byte 14"}},
		{"cut off, lines", "{\"a\":1}\n{\"a\":2}\n{\"a", m{"filter": ".a"}, "1\n2", []string{"cut off at byte"}},
		{"cut off, a number", "[1,2,3,45", m{"filter": ".[]"}, "1\n2\n3", []string{
			"cut off at byte 9, inside a number, at /3; the last complete element is /2",
		}},
		{"cut off, a number that is worked with", "[1,2,3,45", m{"filter": ".[] | . + 1"}, "2\n3\n4", []string{
			"inside a number, at /3",
		}},
		{"cut off, a number that is looked for", "[1,2,3,45", m{
			"filter": ".[] | select(. > 2)",
		}, "3", []string{"inside a number, at /3"}},
		{"cut off, a number in the page after", "[1,2,3,45", m{
			"filter": ".[]", "offset": 3,
		}, "", []string{"inside a number, at /3"}},
		{"cut off, a literal", "[1,false", m{"filter": ".[]"}, "1", []string{"inside a literal, at /1"}},
		{"cut off, a number that is over", "[1,45 ", m{"filter": ".[]"}, "1\n45", []string{"inside an array"}},
		{"cut off, a key with line ends", `{"x\nerror: \r\n":[1,{"q"`, m{"filter": "."}, "", []string{
			`inside an object, at /x\x0aerror: \r\x0a/1;`, `the last complete element is /x\x0aerror: \r\x0a/0, bytes`,
		}},
		{"broken", "[1,2,}", m{"filter": "."}, "", []string{"is not valid JSON at byte 5"}},
		{"broken, lines", "{\"a\":1}\n{\"a\" 2}\n", m{"filter": ".a"}, "1", []string{"is not valid JSON at byte 13, at /1"}},
		{"too deep", strings.Repeat("[", 100_000), m{"filter": "."}, "", []string{"10000 deep"}},
		{"binary", "\x7fELF\x00\x01\x02\x03" +
			strings.Repeat("\x00\xfe", 500), m{"filter": "."}, "", []string{"is binary", "slice"}},
	}
	for _, test := range tests {
		for _, w := range ways {
			t.Run(test.name+"/"+w.name, func(t *testing.T) {
				r, err := run(t, w.tool, test.text, test.args)
				if err == nil {
					t.Fatalf("no error; rows:\n%s", joined(r.rows))
				}
				for _, s := range test.want {
					expect.Contains(t, err.Error(), s)
				}
				expect.Equal(t, joined(r.rows), test.rows)
				if len(err.Error()) > 700 || !strings.HasPrefix(err.Error(), "jq: ") {
					t.Errorf("%d bytes: %s", len(err.Error()), err)
				}
			})
		}
	}
}

func TestNotes(t *testing.T) {
	tests := []struct {
		name, text string
		args       m
		want       string
	}{
		{"nothing found", "[1]", m{"filter": "empty"}, "no results"},
		{"nothing there", "", m{"filter": "."}, "the source is empty"},
		{"a number that is a record and may be cut off", "{\"a\":1}\n[2]\n12", m{"filter": "."}, "the last record is a number or literal, and the text ends with it"},
		{"a literal", "{\"a\":1} [2] true", m{
			"filter": "length?", "slurp": true,
		}, "the last record is a number or literal, and the text ends with it"},
		{"past the end", "[1,2]", m{"filter": ".[]", "offset": 7}, "offset 7 is past the last of 2 results"},
		{"duplicate keys", `{"a":1,"b":2,"a":3}`, m{"filter": ".a"}, `duplicate keys: the last value of each counts (first: "a", before byte 18)`},
	}
	for _, test := range tests {
		for _, w := range ways {
			t.Run(test.name+"/"+w.name, func(t *testing.T) {
				r, err := run(t, w.tool, test.text, test.args)
				expect.Must(t, err)
				if len(r.notes) != 1 || !strings.HasPrefix(r.notes[0], test.want) {
					t.Errorf("notes: %q", r.notes)
				}
			})
		}
	}
}

// A program that never ends is no reason to lose what it gave: the page comes, its total does not.
func TestEndless(t *testing.T) {
	tool := newTool(runner{Options: Options{Memory: 256 << 20, CountFor: 200 * time.Millisecond}})
	for _, a := range []m{
		{"filter": "repeat(1)", "limit": 3},
		{"filter": "repeat(1)"},
		{"filter": "1, 2, 3, (until(false; .))", "limit": 3},
	} {
		t.Run(fmt.Sprint(a), func(t *testing.T) {
			a["source"] = "in"
			ctx, cancel := context.WithTimeout(t.Context(), patience) // which it would end with
			defer cancel()
			r, err := call(ctx, tool, folder(t, map[string]string{"in": "1"}), a, 3)
			expect.Must(t, err)
			if len(r.rows) != 3 || r.total != -1 || r.next == nil {
				t.Errorf("%d rows, total %d, next %v", len(r.rows), r.total, r.next)
			}
		})
	}
}

// One result that is far longer than memory for it neither fills this process nor passes for whole.
func TestLongRow(t *testing.T) {
	a := m{"filter": `"x" * 50000000`}
	r, err := run(t, inWorker, "1", a)
	expect.Must(t, err)
	if len(r.rows) != 1 || r.largest > wholeRow {
		t.Fatalf("%d rows, the longest %d bytes", len(r.rows), r.largest)
	}
	head, rest, _ := strings.Cut(r.rows[0], "… ")
	between, tail, _ := strings.Cut(rest, " chars …")
	if n, err := strconv.Atoi(between); err != nil || len(head)+n+len(tail) != 50_000_002 || head[0] != '"' ||
		!strings.HasSuffix(tail, `x"`) {
		t.Errorf("%.20s, %s chars, %d bytes", head, between, len(tail))
	}
	if all, ok := r.more[0].Args.(args); !ok || !all.Save || all.Limit != 1 {
		t.Errorf("the whole row is %+v", r.more[0])
	}
	a["save"] = true
	if r, err = run(t, inWorker, "1", a); err != nil || r.Len() != 50_000_003 {
		t.Errorf("kept %d bytes: %v", r.Len(), err)
	}
	a = m{"filter": `"x" * 2000000, 7`}
	if r, err = run(t, inWorker, "1", a); err != nil || len(r.rows) != 2 || len(r.rows[0]) != 2_000_002 ||
		r.rows[1] != "7" {
		t.Errorf("%d rows: %v", len(r.rows), err)
	}
}

func TestCallIsPatient(t *testing.T) {
	tool := asItIs
	if tool.Name != "jq" || !tool.Paged || tool.Effect != tools.ReadOnly || tool.OpenWorld || tool.Title == "" {
		t.Errorf("%+v", tool)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := call(
		ctx, inWorker, folder(t, map[string]string{"in": "1"}), m{"source": "in", "filter": "until(false; .)"}, 10,
	)
	if !errors.Is(err, context.Canceled) { // of a program that never ends
		t.Errorf("%v", err)
	}
}
