package viewer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// compared returns the page of two texts, with further parameters.
func compared(f *fixture, before, after, more string) string {
	f.t.Helper()
	a, b := f.keep(observations.Local, "t", before, nil), f.keep(observations.Local, "t", after, nil)
	return f.page("compare?a=obs:" + string(a) + "&b=" + string(b) + more)
}

// What is said of two texts: their lines, or their records by a key that is guessed or chosen.
func TestCompare(t *testing.T) {
	f := newFixture(t)
	table := "sku,name,price\na1,pen,1\nb2,ink,2\n"
	for name, c := range map[string]struct {
		before, after, more string
		want, unwanted      []string
	}{
		"equal":   {before: "a\n", after: "a\n", want: []string{"Both are equal, byte for byte."}},
		"lines":   {before: "one\ntwo\n", after: "one\nthree\n", want: []string{"1 line added, 1 removed", "-two", "+three"}},
		"no end":  {before: "one\ntwo", after: "one\ntwo\nthree\n", want: []string{"+three"}, unwanted: []string{"No newline"}},
		"secrets": {before: "k " + aKey + "\n", after: "k " + strings.Replace(aKey, "16C7", "27D8", 1) + "\n", want: []string{"Only masked secrets"}, unwanted: []string{"ghp_"}},
		"one line of JSON": {
			before: `[{"a":1,"b":[2,3]}]`, after: `[{"a":1,"b":[2,4]}]`, more: "&by=lines",
			want: []string{"Each value of the JSON is on a line of its own.", "-3", "+4"},
		},
		"NDJSON by its id": {
			before: "{\"id\":1,\"n\":\"x\"}\n{\"id\":2,\"n\":\"y\"}\n{\"id\":3,\"n\":\"z\"}\n",
			after:  "{\"id\":3,\"n\":\"z\"}\n{\"n\":\"w\",\"id\":2}\n{\"id\":4,\"n\":\"q\"}\n",
			want:   []string{"1 of 3 records added, 1 of 3 removed, 1 changed", `-1 n: "x"`, `-2 n: "y"`, `+2 n: "w"`, `+4 n: "q"`},
		},
		"table by another key": {
			before: table, after: strings.Replace(table, "b2,ink,2", "b2,ink,3", 1),
			want: []string{"0 of 2 records added, 0 of 2 removed, 1 changed", `-"ink" price: 2`, `+"ink" price: 3`}, more: "&key=name",
		},
		"whole records": {
			before: "[1,1,2]", after: "[2,1,3]", want: []string{"1 of 3 records added, 1 of 3 removed, 0 changed", "-: 1 (2)", "+: 3"},
		},
		"order alone": {before: `[{"id":1},{"id":2}]`, after: `[{"id":2},{"id":1}]`, want: []string{"the order or the layout differ"}},
		"damage":      {before: `[{"id":1}]`, after: "{\"id\":1}\n{\"id\":", want: []string{"What is damaged is not compared: obs:", "ends inside an object"}},
	} {
		page := compared(f, c.before, c.after, c.more)
		for _, want := range c.want {
			expect.Has(t, page, want, name)
		}
		expect.Lacks(t, page, c.unwanted...)
	}
}

// Of long texts the lines that one alone has are found in the background, wherever they stand.
func TestCompareLong(t *testing.T) {
	f := newFixture(t)
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "line %d of a text that is too long to be compared at once\n", i)
	}
	long := b.String()
	expect.Equal(t, len(long) > compareBytes, true)
	moved := "first\n" + strings.Replace(long, "line 30000 ", "line x30000 ", 1) + "line 7 of a text that is too long to be compared at once\n"
	page := compared(f, long, moved, "")
	expect.Contains(t, page, "+first", "+line x30000 ", "+line 7 of", "-line 30000 ", "3 lines added, 1 removed")
	expect.Lacks(t, page, "line 29999", "-line 7 ")
	other := strings.ReplaceAll(long, "line", "row")
	expect.Contains(t, compared(f, long, other, ""), "only the first 512 KiB of such lines of each text are shown",
		"-line 0 of", "removed")
}

// An observation leads to the one before it of the same call, and to a comparison with any other; only its owner compares.
func TestCompareLinks(t *testing.T) {
	f := newFixture(t)
	args := map[string]string{"q": "x"}
	first := f.keep(observations.Local, "t", "one\n", args)
	f.keep(observations.Local, "t", "other\n", map[string]string{"q": "y"})
	second := f.keep(observations.Local, "t", "two\n", args)
	body, _ := f.get("obs/" + string(second))
	link := "/view/compare?a=" + string(first) + "&amp;b=" + string(second)
	expect.Contains(t, body, link, `name="b"`)
	body, _ = f.get("obs/" + string(first))
	expect.Lacks(t, body, "compare with the previous")
	expect.Has(t, f.page("compare?a="+string(first)+"&b="+string(second)), "+two")
	f.who = Who{Owner: "eve"}
	_, status := f.get("compare?a=" + string(first) + "&b=" + string(second))
	expect.Equal(t, status, http.StatusNotFound)
}
