package jq

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
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
	expect.Must(t, err)
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
	r, err := run(
		t, asItIs, string(corpus.CSV20k()),
		m{"slurp": true, "filter": `[length, (map(.amount)|add*100|round/100), (map(select(.comment != ""))|length)]`},
	)
	if expect := fmt.Sprintf("[%d,%.2f,%d]", len(rows)-1, want, comments); err != nil || joined(r.rows) != expect {
		t.Errorf("%v %s, want %s", err, joined(r.rows), expect)
	}
}

// The goroutine that reads a table ends with its call.
func TestTableReaderEnds(t *testing.T) {
	promise.OrdinaryRun(t)
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
