package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// A window of a long line leads on: of one-line JSON to the values that match, of other text to the bytes.
func TestAWindowNamesTheWayOn(t *testing.T) {
	filler := strings.Repeat("z", 12_000)
	text := fmt.Sprintf(`{"filler":%q,"items":[{"name":"<needle>"},{"name":"<needle> 2"}],"more":%[1]q}`, filler)
	s, _ := stored(
		t,
		toolstest.Roots(
			t,
			folder(
				t, "min.json", text, "app.js", "a\n"+filler+"<needle>"+filler+"\n", "short.json",
				`{"a":"`+filler[:5000]+`<needle>"}`,
			),
		),
	)
	for file, want := range map[string]string{
		"min.json":   `to see the matching values by JSON Pointer: grep {"source":"min.json","pattern":"<n.*>","ignore_case":true}`,
		"app.js":     `to see more of it: slice {"source":"app.js","bytes":"10978-"}`,
		"short.json": `to see more of it: slice {"source":"short.json","bytes":"920-"}`,
	} {
		a := must(t, Search(), s, args{"pattern": "<n.*>", "path": file, "ignore_case": true})
		want = "a line over 4 KiB is cut to the text around its match; " + want
		if got := records(t, a); len(a.notes) != 1 || a.notes[0] != want || len(got) != 1 || !got[0].Cut {
			t.Errorf("%s: %q of %d records, want %q", file, a.notes, len(got), want)
		}
	}
	a := must(t, Grep(), s, args{"source": "min.json", "pattern": "<n.*>", "ignore_case": true})
	expect.Equal(t, strings.Join(a.rows, "\n"), "/items/0/name: <needle>\n/items/1/name: <needle> 2", "way on shows")
	// A pattern with a quote is meant for the text of the JSON, as it stands there.
	a = must(t, Grep(), s, args{"source": "min.json", "pattern": `"name": "<needle>"`})
	expect.Equal(t, strings.Join(a.rows, "\n"), "/items/0/name: <needle>", "its text")
	// Once, however many windows there are, and never where nothing is cut.
	if a := must(t, Search(), s, args{"pattern": "needle"}); strings.Count(
		a.note(), "is cut to the text around its match",
	) != 1 {
		t.Errorf("notes %q", a.notes)
	}
	if a := must(t, Search(), s, args{"pattern": "^a$", "path": "app.js"}); len(a.notes) != 0 {
		t.Errorf("notes %q", a.notes)
	}
}

// The column of a cut line is where its first match starts, whatever is shown around it and however the line was read.
func TestTheColumnIsWhereTheMatchStarts(t *testing.T) {
	wide := strings.Repeat("é世", 1000)
	for name, text := range map[string]string{
		"near the start":    strings.Repeat("x", 349) + "Oslo" + wide + "Oslo",
		"in the middle":     wide + "Oslo" + wide,
		"at the end":        wide + "Oslo",
		"over what is held": strings.Repeat(wide, 400) + "Oslo" + strings.Repeat(wide, 100),
		"two lines":         wide + "Oslo" + wide + "\n" + wide + wide + "Oslo\r\n" + wide,
	} {
		dir := folder(t, "a.txt", text+"\n")
		starts := map[int64]int64{} // of each line
		var want []string           // as grep has it: bytes of the file
		last := -1
		for _, hit := range original(t, dir, "grep", "-abo", "Oslo", "a.txt") {
			var at int
			if _, err := fmt.Sscanf(hit, "%d:", &at); err != nil {
				t.Fatal(err)
			}
			start := strings.LastIndexByte(text[:at], '\n') + 1
			if start != last { // the first of its line
				starts[int64(strings.Count(text[:at], "\n")+1)] = int64(start)
				want = append(want, fmt.Sprint(at))
			}
			last = start
		}
		for _, multiline := range []bool{false, true} {
			var got []string
			for _, r := range records(
				t, must(t, Search(), toolstest.Roots(t, dir), args{"pattern": "Oslo", "multiline": multiline}),
			) {
				got = append(got, fmt.Sprint(starts[r.Line]+r.Column-1))
			}
			if len(got) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, multiline %t: bytes %v, grep says %v", name, multiline, got, want)
			}
		}
	}
}

// The call that a note names shows what it says.
func TestTheWayToAMatchInALongValueHolds(t *testing.T) {
	long := strings.Repeat("word ", maxSaved/5+1)
	s := toolstest.Roots(t, folder(t,
		"end.json", `{"a":1,"b":"`+long+`needle"}`,
		"beside.json", `{"b":"`+long+`","c":{"d":"a needle"}}`,
		"short.json", `{"b":"`+long[:1<<16]+`needle"}`,
	))
	for name, want := range map[string]string{
		"end.json": "to see more of it: slice {", "beside.json": "to see the matching values by JSON Pointer: grep {", "short.json": "by JSON Pointer: grep {",
	} {
		a := must(t, Search(), s, args{"pattern": "needle", "path": name})
		if !strings.Contains(a.note(), want) {
			t.Errorf("%s: notes %q", name, a.notes)
		}
	}
}
