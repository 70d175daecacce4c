package continuation

import (
	"slices"
	"strings"
	"testing"
)

// TestMergeOnlyAdds delivers a whole document after one that is cut off: what would lose or contradict anything that
// has arrived is refused.
func TestMergeOnlyAdds(t *testing.T) {
	const (
		paragraph = `{"title":"A","sections":[{"id":"s0"},{"id":"s1","content_type":"paragraph","elements":[`
		table     = `{"sections":[{"id":"s0"},{"id":"t","content_type":"table","elements":[{"headers":["n","v"],"rows":[`
		freshRows = `{"sections":[{"id":"t","elements":[{"headers":["n","v"],"rows":[`
		code      = `{"sections":[{"id":"s0"},{"id":"c","elements":[{"language":"go","code":"a()\nb()\nc(`
	)
	for _, tt := range []struct {
		name, kept, part string
		want             string // the joined text; "" if refused
		reason           string // why it is refused, or what was left out
	}{
		{"all kinds of sections", before, `{"sections":[
			{"id":"t","content_type":"table","elements":[{"headers":["a","b"],"rows":[[5,6]]}]},
			{"id":"l","content_type":"bullet_list","elements":[{"items":["two","three"]}]},
			{"id":"c","content_type":"code_block","elements":[{"language":"go","code":"b()\nc()\nd()\n"}]},
			{"id":"p","content_type":"paragraph","elements":[{"text":"cut off and whole now"}]},
			{"id":"n","content_type":"heading","elements":[{"level":1,"text":"New"}]}]}`, `{"sections":[
			{"id":"l","content_type":"bullet_list","elements":[{"items":["one","two","three"]}]},
			{"id":"t","content_type":"table","elements":[{"headers":["a","b"],"rows":[[1,2],[3,4],[5,6]]}]},
			{"id":"c","content_type":"code_block","elements":[{"language":"go","code":"a()\nb()\nc()\nd()\n"}]},
			{"id":"p","content_type":"paragraph","elements":[{"text":"whole"},{"text":"cut off and whole now"}]},
			{"id":"n","content_type":"heading","elements":[{"level":1,"text":"New"}]}]}`,
			`the cut-off element {"text": "cut o; 1 element that was there already: "two"; 2 lines of code that were there already`},
		{"another title", paragraph + `{"text":"one"},{"text":"tw`,
			`{"title":"B","sections":[{"id":"s1","elements":[{"text":"two"}]}]}`, "", `"title" is "A" already`},
		{"a further member", paragraph + `{"text":"one"},{"text":"tw`,
			`{"title":"A","sections":[{"id":"s1","lang":"de","elements":[{"text":"two"}]},{"id":"s9"}],"end":1}`,
			paragraph + `{"text":"one"},{"text":"two"}],"lang":"de"},{"id":"s9"}],"end":1}`, ""},
		{"another type", paragraph + `{"text":"one"},{"text":"tw`,
			`{"sections":[{"id":"s1","content_type":"table","elements":[{"text":"two"}]}]}`, "", `"content_type" is`},
		{"a name twice", paragraph + `{"text":"one"},{"text":"tw`,
			`{"sections":[{"id":"s1","elements":[{"text":"two"}]}],"sections":[{"id":"s9"}]}`, "", "occurs twice"},
		{"an id twice", paragraph + `{"text":"one"},`,
			`{"sections":[{"id":"s1","elements":[{"text":"two"}]},{"id":"s1"}]}`, "", "occurs twice"},
		{"a name twice before", `{"title":"A","title":"B","sections":[{"id":"s1"},`,
			`{"sections":[{"id":"s2"}]}`, "", "occurs twice"},
		{"a paragraph with a word changed", paragraph + `{"text":"Our cargo checks 203 customs."},{"te`,
			`{"sections":[{"id":"s1","elements":[{"text":"Our barge checks 203 customs."},{"text":"two"}]}]}`,
			"", "nearly an element"},
		{"a row with a cell changed", table + `["0","red"],["1","blue and green"],["2","some`,
			freshRows + `["2","some words"],["3","blue or green"],["1x","blue and green"],["2","some words"]]}]}]}`,
			"", "nearly an element"},
		{"the cut-off paragraph is missing", paragraph + `{"text":"one"},{"text":"a long beginning`,
			`{"sections":[{"id":"s2"}]}`, "", "neither repeats nor completes"},
		{"the rest of the paragraph only", paragraph + `{"text":"one"},{"text":"a long beginning`,
			`{"sections":[{"id":"s1","elements":[{"text":" and its end"}]}]}`, "", "neither repeats nor completes"},
		{"something is due", paragraph + `{"text":"one"},`, `{"sections":[{"id":"s2"}]}`, "", "neither repeats"},
		{"nothing is due", paragraph + `{"text":"one"}`, `{"sections":[{"id":"s2"}]}`,
			paragraph + `{"text":"one"}]},{"id":"s2"}]}`, ""},
		{"cut-off code at whole lines", code, `{"sections":[{"id":"c","elements":[{"language":"go","code":"b()\nc()\nd()"}]}]}`,
			code + `)\nd()"}]}]}`, ""},
		{"cut-off code without a line again", code,
			`{"sections":[{"id":"c","elements":[{"language":"go","code":"d()\ne()"}]}]}`, "", "neither repeats"},
		{"cut-off code with another line", code,
			`{"sections":[{"id":"c","elements":[{"language":"go","code":"b()\nx()"}]}]}`, "", "neither repeats"},
		{"cut-off code in another language", code,
			`{"sections":[{"id":"c","elements":[{"language":"sh","code":"b()\nc()"}]}]}`, "", "neither repeats"},
		{"code of one object", `{"sections":[{"id":"s0"},{"id":"c","elements":{"language":"go","code":"a()\nb()\nc(`,
			`{"sections":[{"id":"c","elements":{"language":"go","code":"b()\nc()"}}]}`,
			`{"sections":[{"id":"s0"},{"id":"c","elements":{"language":"go","code":"a()\nb()\nc()"}}]}`, ""},
		{"rows again", table + `["0",1],["1",1],["2",1],["3`, freshRows + `["1",1],["2",1],["3",1],["4",1]]}]}]}`,
			table + `["0",1],["1",1],["2",1],["3",1],["4",1]]}]}]}`, ""},
		{"rows again, of one cell", table + `["0"],["1"],["2"],["3`, freshRows + `["1"],["2"],["3"],["4"]]}]}]}`,
			table + `["0"],["1"],["2"],["3"],["4"]]}]}]}`, ""},
		{"a row that contradicts",
			table + `["0",1],["1",1],["2",1],`, freshRows + `["1",7],["4",1]]}]}]}`, "", "contradicts"},
		{"a cut-off row that contradicts", table + `["0",1],["1","abc`, freshRows + `["1","abx"],["4",1]]}]}]}`,
			"", "neither repeats"},
		{"rows of another order",
			table + `["0",1],["1",1],["2",1],`, freshRows + `["0",1],["4",1]]}]}]}`, "", "there already"},
		{"a table cut in its headers", `{"sections":[{"id":"s0"},{"id":"t","elements":[{"headers":["n","v`,
			freshRows + `["1",2]]}]}]}`, `{"sections":[{"id":"s0"},{"id":"t","elements":[{"headers":["n","v"],"rows":[["1",2]]}]}]}`, ""},
		{"a table cut in its headers, others", `{"sections":[{"id":"s0"},{"id":"t","elements":[{"headers":["n","w`,
			freshRows + `["1",2]]}]}]}`, "", "neither repeats"},
		{"rows that may overlap in two ways", table + `["a"],["a"],["a"],`, freshRows + `["a"],["a"],["b"]]}]}]}`,
			"", "may repeat 2 or 1"},
		{"a cut-off section", `{"sections":[{"id":"s0"},{"id":"s1"},{"id":"s2","content_ty`,
			`{"sections":[{"id":"s2","content_type":"table"}]}`,
			`{"sections":[{"id":"s0"},{"id":"s1"},{"id":"s2","content_type":"table"}]}`, ""},
		{"a cut-off member of the document", `{"sections":[{"id":"s0"},{"id":"s1"}],"end":"a long te`,
			`{"sections":[{"id":"s2"}]}`, "", "neither repeats"},
		{"sections that are whole", "{\"sections\":[{\"id\":\"s0\"}]}\n", `{"sections":[{"id":"s2"}]}`, "", "whole already"},
		{"no section yet, another title", `{"title":"A","sections":[]}`, `{"title":"B","sections":[{"id":"s2"}]}`,
			"", `no equal "title"`},
		{"no section yet, the same title", `{"title":"A","sections":[]}`, `{"title":"A","sections":[{"id":"s2"}]}`,
			`{"title":"A","sections":[{"id":"s2"}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			add(t, d, tt.kept)
			r := add(t, d, tt.part)
			if tt.want == "" {
				if r.Join != "" || !strings.Contains(r.Reason, tt.reason) {
					t.Errorf("%+v\n%s", r, d.Text())
				}
				return
			}
			if r.Verdict != Done || !strings.Contains(r.Dropped, tt.reason) ||
				!slices.Equal(unitsOf(d.Text()), unitsOf([]byte(tt.want))) {
				t.Errorf("%+v\n%s\nwant\n%s", r, d.Text(), tt.want)
			}
		})
	}
}
