package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// element is what an error says of an array that a filter alone reads element by element.
var element = regexp.MustCompile(`, element \d+`)

// rowOf is the row of a filter of several that gives these results alone.
func rowOf(name string, rows []string, err error) string {
	var said []string
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "jq: ")
		if strings.HasPrefix(text, "record ") && !strings.Contains(text, "in") { // the name of the source
			text = "in: " + text
		}
		said = append(said, "error: "+text)
	}
	switch {
	case len(rows) == 1:
		said = slices.Insert(said, 0, rows[0])
	case len(rows) > 1:
		said = slices.Insert(said, 0, fmt.Sprintf("%d results", len(rows)))
		return name + ": " + strings.Join(said, "; ") + "\n" + joined(rows)
	case err == nil:
		said = append(said, "no results")
	}
	return name + ": " + strings.Join(said, "; ")
}

// Several filters give what each gives alone, which other tests compare with jq and gojq.
func TestSeveralFiltersAreEachAlone(t *testing.T) {
	type on struct{ text, flags string }
	of := map[on][]string{}
	for _, c := range comparisons {
		at := on{c.text, c.flags}
		of[at] = append(of[at], c.filter)
	}
	broken := []string{".[]", "map(.id)", ".[0]", "length", ".[1:][]", ".", "first(.[])", "map(.id) | add", "reduce .[] as $x (0; . + 1)"}
	of[on{records[:len(records)-30], ""}] = broken
	of[on{lines[:60], ""}] = []string{".n", ".", "."}
	of[on{lines + "[1,2]\n{\"n\":7,\"n\":8}\n", ""}] = []string{".n?", "length", ".[]?", "map(. * 2)?", "nope", ".["}
	of[on{records + "\n[]\n" + numbers, ""}] = append(broken, "sort_by(.id?) | .[:1]", "map(.id?) | add", "add", "max", "min_by(.)")
	of[on{lines, "-s"}] = []string{"map(.n)", ".[1:2]", "map(.n) | add", "group_by(.level) | map(length)", "sort_by(.n) | .[-1:]", ".", "length", "max_by(.n)", ".[0].n, .[1].msg", "map(.level) | add", "error"}
	for at, filters := range of {
		for chunk := range slices.Chunk(filters, tools.MaxQueries) {
			a := m{"filter": chunk}
			for _, f := range strings.TrimPrefix(at.flags, "-") {
				a[map[rune]string{'r': "raw", 's': "slurp", 'R': "text"}[f]] = true
			}
			want := make([]string, len(chunk))
			broken := ""
			for i, filter := range chunk {
				alone := m{}
				for k, v := range a {
					alone[k] = v
				}
				alone["filter"] = filter
				r, err := run(t, inProcess, at.text, alone)
				if err != nil {
					own, ofSource, _ := strings.Cut("\n"+err.Error(), "\njq: in is ") // the latter is said once
					if own = element.ReplaceAllString(own, ""); own == "" {
						err = nil
					} else {
						err = errors.New(own[1:])
					}
					broken += ofSource
				}
				want[i] = rowOf(fmt.Sprint(i+1), r.rows, err)
			}
			for _, w := range ways[:2] { // as it is, a group runs in a worker
				r, err := run(t, w.tool, at.text, a)
				if (err != nil) != (broken != "" || !slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(s, "compile") })) {
					t.Errorf("%s: %v, want %s", w.name, err, broken)
				}
				for i := range r.rows {
					r.rows[i], _, _ = strings.Cut(r.rows[i], "no results; ") // why is said too
					want[i], _, _ = strings.Cut(want[i], "no results; ")
				}
				expect.Same(t, r.rows, want, "%s, %s %q (-together +alone)", w.name, at.flags, at.text)
			}
		}
	}
}

// The results of each filter are on one page or in the call that its row names, each once.
func TestEachFilterHasItsShareOfThePage(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"n":%d,"s":%q}`+"\n", i, strings.Repeat("x", i%50))
	}
	from := folder(t, map[string]string{"in": text.String()})
	page := func(a m, room int) []string {
		b, err := json.Marshal(a)
		expect.Must(t, err)
		r := &recorder{most: 1000, counts: map[string]float64{}}
		in := tools.Input{Args: b, Sources: from}
		if room > 0 {
			in.BytesThatFit = func(text []byte) int { return min(len(text), room) }
		}
		expect.Must(t, asItIs.Run(t.Context(), in, r))
		if size := len(joined(r.rows)); room > 0 && size > room {
			t.Errorf("%d bytes on a page of %d", size, room)
		}
		return r.rows
	}
	filters := m{"few": "select(.n < 3) | .n", "all": ".n", "texts": ".s", "one": "select(.n == 7)", "long": "[.s * 100]"}
	for _, room := range []int{1500, 3000, 9000} {
		rows := page(m{"source": "in", "filter": filters}, room)
		expect.Equal(t, len(rows), len(filters), "rows")
		for _, row := range rows {
			head, shown, _ := strings.Cut(row, "\n")
			name, _, _ := strings.Cut(head, ":")
			filter, _ := filters[name].(string)
			want := page(m{"source": "in", "filter": filter}, 0)
			got := strings.Split(shown, "\n")
			if strings.Contains(head, "is cut") {
				got = nil
			}
			if name == "one" {
				got = []string{strings.TrimPrefix(head, "one: ")}
			}
			if _, call, cut := strings.Cut(head, "next: jq "); cut {
				next := m{}
				expect.Must(t, json.Unmarshal([]byte(call), &next), "%s", call)
				got = append(got, page(next, 0)...)
			}
			expect.Same(t, got, want, "%d: %s", room, name)
		}
	}
}

// A filter that needs too much memory does not stop the others, nor does one that fails or does not compile.
func TestOneFilterDoesNotStopTheOthers(t *testing.T) {
	small := newTool(runner{Options: Options{Memory: worker.MinMemory, CountFor: patience}, always: true})
	r, err := run(t, small, lines, m{"filter": m{"bomb": "[range(100000000)] | length", "n": ".n", "wrong": ".n.x", "bad": "}"}})
	expect.Must(t, err)
	for i, want := range []string{"bad: error: filter does not parse", "bomb: error: the filter needs more than", "n: 3 results\n1\n2\n3", "wrong: error: record 0: expected an object"} {
		if !strings.HasPrefix(r.rows[i], want) { // json.Marshal sorts the names
			t.Errorf("%q, want %q", r.rows[i], want)
		}
	}
	if _, err := run(t, asItIs, lines, m{"filter": []string{"}", "nope"}}); err == nil || !strings.Contains(err.Error(), "no filter of the call compiles; 1: error: ") {
		t.Errorf("%v", err)
	}
	for _, a := range []m{{"offset": 1}, {"save": true}} {
		a["filter"] = []string{"."}
		if _, err := run(t, asItIs, lines, a); err == nil || !strings.Contains(err.Error(), "offset and save go with one filter") {
			t.Errorf("%v", err)
		}
	}
}

// Several filters run on several sources, whose lines they know, and limit is for each filter.
func TestSeveralFiltersOnSeveralSources(t *testing.T) {
	from := folder(t, map[string]string{
		"a.ndjson": "{\"n\":1}\n{\"n\":2}\n", "b.csv": "n,m\n3,x\n", "c.ndjson": "{\"n\":\"4\"}\n{\"n\":5}\n{\"n\":", "git": "commit " +
			strings.Repeat("a", 40) + "\nAuthor: A <a@x>\nDate:   2026-11-20\n\n    S\n",
	})
	for _, w := range ways {
		for _, tt := range []struct {
			args          m
			rows, err, of string
		}{
			{m{"source": []string{"a.ndjson", "b.csv"}, "filter": []string{".n", "input_line_number"}}, "1: 3 results\n1\n2\n3\n2: 3 results\n1\n2\n2", "", ""},
			{m{"source": []string{"a.ndjson", "b.csv"}, "filter": []string{"map(.n) | add", "length"}, "slurp": true}, "1: 6\n2: 3", "", ""},
			{m{"source": []string{"a.ndjson", "c.ndjson"}, "filter": []string{".n + 1"}, "limit": 2},
				"1: 3 results, 2 shown; error: c.ndjson: record 0: cannot add: string (\"4\") and number (1); the other 1 record went well; next: jq ", "c.ndjson is cut off", ""},
			{m{"source": []string{"a.ndjson", "none"}, "filter": []string{"length"}}, "1: 2 results\n1\n1", "none", ""},
			{m{"source": "git", "filter": []string{".added", "[.files, .deleted]"}}, "1: null\n2: [null,null]", "", "git: 1 of 1 commit has no --stat or --numstat: files, added, deleted are null"},
		} {
			r, err := call(t.Context(), w.tool, from, tt.args, 1000)
			if !strings.HasPrefix(joined(r.rows), tt.rows) || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v:\n%s\n%v", w.name, tt.args, joined(r.rows), err)
			}
			expect.Equal(t, strings.Join(r.notes, "; "), tt.of, "notes")
		}
	}
}
