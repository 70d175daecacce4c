package jq

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestSeveralSources(t *testing.T) {
	from := folder(t, map[string]string{
		"a.json": `{"n":1}`, "b.json": `[{"n":2},{"n":3}]`, "c.ndjson": "{\"n\":4}\n{\"n\":5}\n", "d.csv": "n,m\n6,x\n",
		"cut.json": `{"n":`, "bin": "\x00\x01\x02\xff", "e[1].json": `{"n":7}`, "empty.json": "",
	})
	for _, w := range ways {
		for _, tt := range expect.Table[struct {
			Name  string
			Args  m
			Rows  string
			Total int64
			Err   string
		}](t, "testdata/several.tsv") {
			t.Run(tt.Name+"/"+w.name, func(t *testing.T) {
				r, err := call(t.Context(), w.tool, from, tt.Args, 1000)
				expect.Equal(t, strings.Join(r.rows, " "), tt.Rows, "rows")
				switch {
				case tt.Err == "" && (err != nil || r.total != tt.Total):
					t.Errorf("%v, %d in all, want %d", err, r.total, tt.Total)
				case tt.Err != "" && (err == nil || !strings.Contains(err.Error(), tt.Err)):
					t.Errorf("%v, want %q", err, tt.Err)
				}
			})
		}
	}
}

// TestNotesOnSeveralSources checks that each source has the notes that it has alone.
func TestNotesOnSeveralSources(t *testing.T) {
	from := folder(t, map[string]string{
		"1.json": `{"a":1,"a":2}`, "2.json": `{"a":1}`, "3.json": `{"b":1,"b":2}`, "4.json": `{"b":1,"b":2}`,
		"5.json": `{"c":1,"c":2}`, "open.ndjson": "{\"a\":1}\n12", "empty.json": "", "none.json": "",
	})
	for _, w := range ways {
		r, err := call(t.Context(), w.tool, from, m{
			"source": []string{"1.json", "2.json", "3.json", "open.ndjson", "4.json", "5.json"}, "filter": "length",
		}, 1000)
		got := strings.Join(r.notes, "\n")
		if err != nil || !strings.Contains(got, `1.json: duplicate keys: the last value of each counts (first: "a"`) ||
			!strings.Contains(got, `3.json: duplicate keys`) || strings.Contains(got, "2.json") ||
			!strings.Contains(got, "open.ndjson: the last record is a number or literal") ||
			!strings.Contains(got, "… and 2 further notes on sources") {
			t.Errorf("%s: %v: %s", w.name, err, got)
		}
		r, err = call(t.Context(), w.tool, from, m{"source": []string{"empty.json", "none.json"}, "filter": "."}, 1000)
		if got := strings.Join(r.notes, "\n"); err != nil || got != "the sources are empty: there was nothing to run the filter on" {
			t.Errorf("%s: %v: %s", w.name, err, got)
		}
	}
}

// Pages over several sources are all results, each once.
func TestPagesOfSeveralSources(t *testing.T) {
	files, names, want := map[string]string{}, []string{}, []string{}
	for i := range 7 {
		var b strings.Builder
		for j := range i * 3 {
			fmt.Fprintf(&b, "{\"v\":%d}\n", 100*i+j)
			want = append(want, fmt.Sprint(100*i+j))
		}
		name := fmt.Sprintf("f%d.ndjson", i)
		files[name], names = b.String(), append(names, name)
	}
	from := folder(t, files)
	args := m{"source": names, "filter": ".v"}
	var got []string
	for range 20 {
		r, err := call(t.Context(), asItIs, from, args, 5)
		expect.Must(t, err)
		if r.first != int64(len(got)) || r.total != int64(len(want)) {
			t.Fatalf("page from %d of %d, %d shown before", r.first, r.total, len(got))
		}
		got = append(got, r.rows...)
		if r.next == nil {
			break
		}
		sent, err := json.Marshal(r.next.Args)
		expect.Must(t, err)
		args = m{}
		expect.Must(t, json.Unmarshal(sent, &args))
	}
	expect.Same(t, got, want, "-all +pages")
}

func TestSeveralSourcesAreKeptWithTheirOrigin(t *testing.T) {
	from := folder(t, map[string]string{"a.json": "1", "b.json": "2"})
	r, err := call(t.Context(), asItIs, from, m{"source": "*.json", "filter": ". * 10", "save": true}, 1000)
	if err != nil || r.String() != "10\n20\n" || !slices.Equal(r.origin, []string{"a.json", "b.json"}) {
		t.Errorf("%q from %q: %v", r.String(), r.origin, err)
	}
	many := slices.Repeat([]string{"a.json"}, maxSources+1)
	if _, err := call(t.Context(), asItIs, from, m{"source": many, "filter": "."}, 1000); err == nil ||
		!strings.Contains(err.Error(), "1001 sources; one call takes at most 1000") {
		t.Errorf("%v", err)
	}
}

// Every kind of text has records, and bad input gives one clear answer.
func TestRecordsOfEveryKind(t *testing.T) {
	wide := make([]string, 2000)
	for i := range wide {
		wide[i] = fmt.Sprintf("c%d", i)
	}
	logs := "2026-11-20T10:00:00Z ERROR a n=1\nNov 20 10:00:01 host app[1]: b\n[20/Nov/2026:10:00:02 +0000] INFO c\n"
	for _, tt := range []struct{ name, file, text, filter, want string }{
		{"log with three times", "a.log", logs, "[.line,.time,.level,.n]",
			`[1,"2026-11-20T10:00:00Z","error",1] [2,"Nov 20 10:00:01",null,null] [3,"20/Nov/2026:10:00:02 +0000","info",null]`},
		{"ragged CSV", "a.csv", "a,b\n" + strings.Repeat("0,0\n", 20) + "1\n2,3,4\n", "select(.a > 0)",
			`{"a":1} {"a":2,"b":3,"column_3":4}`},
		{"2,000 columns", "a.csv", strings.Join(wide, ",") + "\n" + strings.Join(wide, ",") + "\n",
			"[length,.c1999]", `[2000,"c1999"]`},
		{"truncated diff", "a.diff", "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n",
			"[.file,.deleted,.truncated]", `["f",1,true]`},
		{"merged diff", "a.diff", "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,2 -1,2 +1,2 @@@\n  a\n- b\n -c\n++d\n",
			".file", `"f"`},
		{"git log", "a.txt", "commit " + strings.Repeat("a", 40) + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    S\n\n 1 file changed, 2 insertions(+)\n",
			"[.author,.date,.subject,.files,.added,.deleted]", `["A","2026-11-20","S",1,2,0]`},
		{"text", "a.txt", "hello there\nand more\n", "[.line,.text]", `[1,"hello there"] [2,"and more"]`},
		{"Markdown", "a.md", "# T\n\ntext\n", ".text", `"# T" "" "text"`},
		{"JSON wrapped five deep", "a.json", `{"a":{"b":{"c":{"d":{"e":[1,2]}}}}}`, ".a.b.c.d.e | length", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, w := range ways {
				r, err := call(
					t.Context(),
					w.tool,
					folder(t, map[string]string{tt.file: tt.text}),
					m{"source": tt.file, "filter": tt.filter},
					1000,
				)
				if got := strings.Join(r.rows, " "); err != nil || got != tt.want {
					t.Errorf("%s: %s, want %s (%v)", w.name, got, tt.want, err)
				}
			}
		})
	}
}

// A regular expression that RE2 lacks gets the way that works; one that is broken does not.
func TestErrorsOfRegularExpressionsNameRE2(t *testing.T) {
	from := folder(t, map[string]string{"a.json": `"x"`})
	for pattern, said := range map[string]bool{
		"(?=x)": true, "(?!x)": true, "(?<=x)y": true, "(?<!x)y": true, `(x)\1`: true, "(": false, "[": false, "x**": false,
	} {
		quoted, _ := json.Marshal(pattern)
		for _, w := range ways {
			_, err := call(t.Context(), w.tool, from, m{"source": "a.json", "filter": "test(" + string(quoted) + ")"}, 10)
			if err == nil || strings.Contains(err.Error(), `regular expressions are RE2`) != said ||
				strings.Contains(err.Error(), `split("\n…")`) != said {
				t.Errorf("%s: %s: %v", w.name, pattern, err)
			}
		}
	}
}
