package jq

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"pgregory.net/rapid"
)

func TestTableRowsAreObjects(t *testing.T) {
	const table = "id,name,zip,amount,note,note\n1,Ann,00123,12.50,\"a, b\",x\n2,\"Bob \"\"B\"\"\",99,7,,y\n3,Cid,123456789012345678901234567890,1e3,\"multi\nline\",z\n"
	for _, way := range ways {
		for filter, want := range map[string]string{
			".name": "\"Ann\"\n\"Bob \\\"B\\\"\"\n\"Cid\"", ".zip": "\"00123\"\n99\n123456789012345678901234567890", ".amount": "12.50\n7\n1e3",
			".note": "\"a, b\"\n\"\"\n\"multi\\nline\"", ".note_2": "\"x\"\n\"y\"\n\"z\"", "select(.amount > 10).id": "1\n3",
		} {
			r, err := run(t, way.tool, table, m{"filter": filter})
			if err != nil || joined(r.rows) != want {
				t.Errorf("%s, %s: %v\n%s", way.name, filter, err, joined(r.rows))
			}
		}
		r, err := run(t, way.tool, table, m{"filter": "length", "text": true})
		if err != nil || len(r.rows) != 5 {
			t.Errorf("%s, as text: %d lines, %v", way.name, len(r.rows), err)
		}
	}
}

// A real table says the same as the standard library's reader.
func TestTableEqualsCSV(t *testing.T) {
	rows, err := csv.NewReader(bytes.NewReader(corpus.CSV20k())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sum, comments := new(big.Rat), 0
	for _, row := range rows[1:] {
		amount, ok := new(big.Rat).SetString(row[3])
		if !ok {
			t.Fatal(row)
		}
		sum.Add(sum, amount)
		if row[6] != "" {
			comments++
		}
	}
	want, _ := sum.Float64()
	r, err := run(t, asItIs, string(corpus.CSV20k()), m{"slurp": true, "filter": `[length, (map(.amount)|add*100|round/100), (map(select(.comment != ""))|length)]`})
	if expect := fmt.Sprintf("[%d,%.2f,%d]", len(rows)-1, want, comments); err != nil || joined(r.rows) != expect {
		t.Errorf("%v %s, want %s", err, joined(r.rows), expect)
	}
}

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
		if err := rowObjects(t.Context(), &in, &out); err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(&out)
		d.UseNumber()
		for i, row := range want {
			var got map[string]any
			if err := d.Decode(&got); err != nil {
				t.Fatalf("row %d: %v", i, err)
			}
			for j, cell := range row {
				if g := fmt.Sprint(got[header[j]]); g != cell {
					t.Fatalf("row %d, %s: %q, want %q", i, header[j], g, cell)
				}
			}
		}
	})
}

// Rows of any width have a name for each cell, and what is read of a table ends with its call.
func TestTableEdges(t *testing.T) {
	promise.OrdinaryRun(t)
	var out bytes.Buffer
	if err := rowObjects(t.Context(), strings.NewReader("a,,a\n1,2,3,4\n5\n"), &out); err != nil || out.String() != "{\"a\":1,\"column_2\":2,\"a_2\":3,\"column_4\":4}\n{\"a\":5}\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := rowObjects(t.Context(), strings.NewReader("a,b\n1,"+strings.Repeat("x", maxRow+1<<20)+"\n"), &out); err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") {
		t.Errorf("a row of 17 MiB: %v", err)
	}
	before := runtime.NumGoroutine()
	for range 5 {
		if _, err := run(t, asItIs, string(corpus.CSV20k()), m{"filter": ".id", "limit": 1}); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if runtime.NumGoroutine() <= before+2 {
			return
		}
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
