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
	type row struct {
		Name, Text string
		Args       m
		Want       string
	}
	tests := append(expect.Table[row](t, "testdata/results.tsv"),
		row{"digits of args", "null", m{"filter": "$n", "args": m{"n": rawNumber("12345678901234567890")}},
			"12345678901234567890"},
		row{"deep", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), m{"filter": "[..] | length"}, "9000"},
	)
	for _, test := range tests {
		for _, w := range ways {
			t.Run(test.Name+"/"+w.name, func(t *testing.T) {
				r, err := run(t, w.tool, test.Text, test.Args)
				expect.Must(t, err)
				// complete, as jq has it
				if text := strings.Trim(test.Text, "0123456789 \n"); text == "" && len(r.notes) > 0 && test.Text != "" {
					t.Errorf("notes: %q", r.notes)
				}
				expect.Equal(t, joined(r.rows), test.Want)
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
	type row struct {
		Name, Text string
		Args       m
		Rows       string
		Want       []string
	}
	tests := append(expect.Table[row](t, "testdata/errors.tsv"),
		row{"long filter", "1", m{"filter": "." + long + " | }"}, "", []string{`unexpected token "}"`, "…xxx", "x | }\n", "^"}},
		row{"too long a filter", "1", m{
			"filter": strings.Repeat("1+", 100_000) + "1",
		}, "", []string{"filter is 200001 bytes long"}},
		row{"long error", "1", m{"filter": `error("` + long + `")`}, "", []string{"xxx…"}},
		row{"too deep", strings.Repeat("[", 100_000), m{"filter": "."}, "", []string{"10000 deep"}},
		row{"binary", "\x7fELF\x00\x01\x02\x03" +
			strings.Repeat("\x00\xfe", 500), m{"filter": "."}, "", []string{"is binary", "slice"}},
	)
	for _, test := range tests {
		for _, w := range ways {
			t.Run(test.Name+"/"+w.name, func(t *testing.T) {
				r, err := run(t, w.tool, test.Text, test.Args)
				if err == nil {
					t.Fatalf("no error; rows:\n%s", joined(r.rows))
				}
				for _, s := range test.Want {
					expect.Contains(t, err.Error(), s)
				}
				expect.Equal(t, joined(r.rows), test.Rows)
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
