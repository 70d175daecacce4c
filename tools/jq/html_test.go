package jq

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestTablesOfHTML: the rows of the tables of a page are records; a page without tables has lines.
func TestTablesOfHTML(t *testing.T) {
	for _, c := range []struct{ page, filter, want, note string }{
		{"<p>x<table><tr><th>Name<th>n</tr><tr><td>a<br>b<td>1</tr><tr><td>c</table>y", ".",
			`{"Name":"a b","n":1} {"Name":"c"}`, "rows of its 1 table, the first row of each as names; text=true reads the lines of its source"},
		{"<table><thead><tr><td>k</td><td>v</td></tr></thead><tbody><tr><td>é &amp; ü</td><td>-1.50</td></tr></table>", ".",
			`{"k":"é & ü","v":-1.50}`, "1 table"},
		{"<table><tr><th>a<th>a<th></tr><tr><td>1<td>2<td>3<td>4</table>", ".",
			`{"a":1,"a_2":2,"column_3":3,"column_4":4}`, ""},
		{"<table><tr><th colspan=2>a<th>b</tr><tr><td rowspan=2>1<td>2<td>3</tr><tr><td>4<td>5</table>", ".",
			`{"a":1,"b":3,"column_2":2} {"a":"","b":5,"column_2":4}`, ""},
		{"<table><tr><td><th>a<th>b</tr><tr><th>x<td>1<td>2</table>", ".", `{"a":1,"b":2,"column_1":"x"}`, ""},
		{"<table><tr><th>x<td>1</tr><tr><th>y<td>2</table>", ".", `{"1":2,"x":"y"}`, ""},
		{"<table><tr><th>a<tr><td>1</table><table><tr><th>h</table><table><tr><th>b<tr><td>2</table>", ".",
			`{"#table":1,"a":1} {"#table":3,"b":2}`, "rows of its 3 tables"},
		{"<table><tr><td>o<table><tr><th>i</tr><tr><td>1</table>p</tr><tr><td>q</table>", `."#table"`, "2 1", "2 tables"},
		{"<p>no\n<b>table</b>", ".text", `"<p>no" "<b>table</b>"`, ""},
		{"<table><tr><td>one</table>", ".line", "1", ""},
		{"<tr><th>a<tr><td>1", ".line", "1", ""},
	} {
		for _, way := range ways {
			r, err := call(t.Context(), way.tool, folder(t, map[string]string{"p.html": c.page}), m{"source": "p.html", "filter": c.filter}, 100)
			expect.Must(t, err, c.page)
			expect.Equal(t, strings.Join(r.rows, " "), c.want, c.page)
			expect.Has(t, strings.Join(r.notes, "\n"), c.note, c.page)
		}
	}
	pages := folder(t, map[string]string{"p.html": "<table><tr><th>a<tr><td>1</table>"})
	r, err := call(t.Context(), asItIs, pages, m{"source": "p.html", "filter": ".", "text": true}, 9)
	expect.Must(t, err)
	expect.Equal(t, strings.Join(r.rows, " "), `"<table><tr><th>a<tr><td>1</table>"`)
	_, err = call(t.Context(), asItIs, pages, m{"source": "p.html", "filter": "input_line_number"}, 9)
	expect.Fails(t, err, "not known of rows in HTML")
}
