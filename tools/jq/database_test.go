package jq

import (
	"database/sql"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// A filter gives the same for the rows of a table as for the same rows in a file, whichever of the columns it reads.
func TestTablesOfDatabases(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be handed to workers there")
	}
	const ndjson = `{"a":1,"b":"x","c":{"blob":2}}` + "\n" + `{"a":9223372036854775807,"b":"y","c":null}` + "\n" +
		`{"a":null,"b":"é","c":2.5}` + "\n"
	dir := t.TempDir()
	db := expect.Value(sql.Open("sqlite", filepath.Join(dir, "a.db")))(t, "open")
	for _, s := range []string{
		"CREATE TABLE t(a INTEGER, b TEXT, c BLOB)", "INSERT INTO t VALUES (1, 'x', x'0001'), (9223372036854775807, 'y', NULL)",
		"INSERT INTO t VALUES (NULL, 'é', 2.5)",
	} {
		_, err := db.Exec(s)
		expect.Must(t, err, s)
	}
	expect.Must(t, db.Close())
	roots := toolstest.Roots(t, dir)
	for _, a := range []m{
		{"filter": "."}, {"filter": ".a"}, {"filter": "select(.a > 5) | .b"}, {"filter": "{b}"}, {"filter": "1"},
		{"filter": ".c.blob?"}, {"filter": "keys"}, {"filter": ".no"}, {"filter": "length"}, {"filter": "[.[]]"},
		{"filter": "input_line_number"}, {"filter": ".a, (input | .b)"}, {"filter": "map(.b)", "slurp": true},
		{"filter": "$__loc__"}, {"filter": "to_entries[].key"}, {"filter": "with_entries(.value |= type)"},
		{"filter": "has(\"c\")"}, {"filter": ".[\"b\"]"}, {"filter": "del(.a)"}, {"filter": ". as {a: $x} | $x"},
		{"filter": ".b", "text": true}, {"filter": ".a[0]"}, {"filter": "error"}, {"filter": "select(.zz == 1)"},
	} {
		want, wanted := run(t, asItIs, ndjson, a)
		for _, name := range []string{"a.db#t", "a.db"} {
			args := m{"source": name}
			for k, v := range a {
				args[k] = v
			}
			got, err := call(t.Context(), asItIs, roots, args, 1000)
			if joined(got.rows) != joined(want.rows) || (err == nil) != (wanted == nil) ||
				err != nil && strings.ReplaceAll(err.Error(), "a.db#t", "in") != wanted.Error() {
				t.Errorf("%v of %s: %v\n%s\nwant %v\n%s", a, name, err, joined(got.rows), wanted, joined(want.rows))
			}
		}
	}
}

// Many calls at once on tables end: workers that write rows do not wait for the slots of those that read them.
func TestManyCallsOnTables(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be handed to workers there")
	}
	dir := t.TempDir()
	db := expect.Value(sql.Open("sqlite", filepath.Join(dir, "a.db")))(t, "open")
	_, err := db.Exec("CREATE TABLE t AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT n FROM r")
	expect.Must(t, err)
	expect.Must(t, db.Close())
	roots := toolstest.Roots(t, dir)
	var wg sync.WaitGroup
	for range 2*runtime.NumCPU() + 2 {
		wg.Go(func() {
			got, err := call(t.Context(), asItIs, roots, m{"source": []string{"a.db#t", "a.db#t"}, "filter": "map(.n) | add", "slurp": true}, 9)
			if err != nil || joined(got.rows) != "400020000" {
				t.Errorf("%s, %v", joined(got.rows), err)
			}
		})
	}
	wg.Wait()
}
