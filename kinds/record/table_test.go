package record

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestTableOfAnyCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOf(rapid.RuneFrom([]rune("ab\",;\n 0189.-é中")))
		width := rapid.IntRange(1, 5).Draw(t, "width")
		var in bytes.Buffer
		w := csv.NewWriter(&in)
		header := make([]string, width)
		for i := range header {
			header[i] = fmt.Sprintf("c%d", i)
		}
		_ = w.Write(header)
		var want [][]string
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			row := []string{"x"} // a row of one empty cell is a blank line, which is no row
			for len(row) < width {
				row = append(row, strings.ReplaceAll(cell.Draw(t, "cell"), "\r", ""))
			}
			want = append(want, row)
			_ = w.Write(row)
		}
		w.Flush()
		var out bytes.Buffer
		expect.Must(t, TableRows(t.Context(), &in, &out))
		d := json.NewDecoder(&out)
		d.UseNumber()
		for i, row := range want {
			var got map[string]any
			expect.Must(t, d.Decode(&got), "row %d", i)
			for j, cell := range row {
				expect.MustEqual(t, fmt.Sprint(got[header[j]]), cell, "row %d, %s", i, header[j])
			}
		}
	})
}

// Rows of any width have a name for each cell.
func TestTableEdges(t *testing.T) {
	var out bytes.Buffer
	if err := TableRows(t.Context(), strings.NewReader("a,,a\n1,2,3,4\n5\n"), &out); fmt.Sprint(err) !=
		"2 rows have not 3 cells: first record 0 (line 2) with 4" ||
		out.String() != "{\"a\":1,\"column_2\":2,\"a_2\":3,\"column_4\":4}\n{\"a\":5}\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := TableRows(
		t.Context(), strings.NewReader("a,b\n1,"+strings.Repeat("x", MaxLine+1<<20)+"\n"), &out,
	); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("a row of 17 MiB: %v", err)
	}
}
