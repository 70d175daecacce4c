package search

import (
	"fmt"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
	"strings"
	"testing"
)

// A window of a long line leads on: of one-line JSON to the values that match, of other text to the bytes.
func TestAWindowNamesTheWayOn(t *testing.T) {
	filler := strings.Repeat("z", 12_000)
	text := fmt.Sprintf(`{"filler":%q,"items":[{"name":"<needle>"},{"name":"<needle> 2"}],"more":%[1]q}`, filler)
	s := stored(t, toolstest.Roots(t, folder(t, "min.json", text, "app.js", "a\n"+filler+"<needle>"+filler+"\n", "short.json", `{"a":"`+filler[:5000]+`<needle>"}`)))
	for file, want := range map[string]string{
		"min.json":   `the values that match, by JSON Pointer: grep {"source":"min.json","pattern":"<n.*>","ignore_case":true}`,
		"app.js":     `more of it: slice {"source":"app.js","bytes":"10978-"}`,
		"short.json": `more of it: slice {"source":"short.json","bytes":"920-"}`,
	} {
		a := must(t, Search(), s, args{"pattern": "<n.*>", "path": file, "ignore_case": true})
		want = "of a line over 4 KiB only what is around its match stands here; " + want
		if got := records(t, a); len(a.notes) != 1 || a.notes[0] != want || len(got) != 1 || !got[0].Cut {
			t.Errorf("%s: %q of %d records, want %q", file, a.notes, len(got), want)
		}
	}
	a := must(t, Grep(), s, args{"source": "min.json", "pattern": "<n.*>", "ignore_case": true})
	if got := strings.Join(a.rows, "\n"); got != "/items/0/name: <needle>\n/items/1/name: <needle> 2" {
		t.Errorf("the way on shows %.200q", got)
	}
	// A pattern with a quote is meant for the text of the JSON, as it stands there.
	a = must(t, Grep(), s, args{"source": "min.json", "pattern": `"name": "<needle>"`})
	if got := strings.Join(a.rows, "\n"); got != "/items/0/name: <needle>" {
		t.Errorf("by its text: %.200q", got)
	}
	// Once, however many windows there are, and never where nothing is cut.
	if a := must(t, Search(), s, args{"pattern": "needle"}); strings.Count(a.note(), "only what is around") != 1 {
		t.Errorf("notes %q", a.notes)
	}
	if a := must(t, Search(), s, args{"pattern": "^a$", "path": "app.js"}); len(a.notes) != 0 {
		t.Errorf("notes %q", a.notes)
	}
}
