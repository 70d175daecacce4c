package fs

import (
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// find lists the tables of databases, small and large; read and slice show tables and rows, and name what reads Parquet.
func TestDatabases(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be handed to workers there")
	}
	dir := t.TempDir()
	for name, n := range map[string]string{"small.db": "1", "large.db": "30000"} {
		db := expect.Value(sql.Open("sqlite", filepath.Join(dir, name)))(t, "open")
		for _, s := range []string{
			"CREATE TABLE t(a INTEGER)", "CREATE TABLE u(b)",
			"INSERT INTO t WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < " + n + ") SELECT n FROM r",
		} {
			_, err := db.Exec(s)
			expect.Must(t, err, s)
		}
		expect.Must(t, db.Close())
	}
	expect.Must(t, os.WriteFile(filepath.Join(dir, "a.parquet"), []byte("PAR1\x00\x15\xff\xfe"), 0o600))
	roots := toolstest.Roots(t, dir)
	a, err := call(t, Find(), roots, `{"show":"stat"}`)
	expect.Must(t, err)
	for _, want := range []string{
		`"kind":"sqlite","tables":[{"table":"t","rows":1,"columns":["a INTEGER"]},{"table":"u","rows":0,"columns":["b"]}]}`,
		`"kind":"sqlite","tables":[{"table":"t","rows":30000,"columns":["a INTEGER"]},{"table":"u","rows":0,"columns":["b"]}]}`,
	} {
		if !strings.Contains(a.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, a)
		}
	}
	expect.Must(t, os.WriteFile(filepath.Join(dir, "small.db-wal"), []byte("0123456789"), 0o600))
	for _, show := range []string{"stat", "kinds"} {
		a, err := call(t, Find(), roots, `{"path":"small.db","show":"`+show+`"}`)
		if want := "small.db-wal has 10 bytes of changes that are not read"; err != nil || !strings.Contains(a.String(), want) {
			t.Errorf("show=%s does not say %s: %s, %v", show, want, a, err)
		}
	}
	for args, want := range map[string]string{
		`{"path":"small.db"}`: `{"table":"u","rows":0,"columns":["b"]}`, `{"path":"small.db#t"}`: `{"a":1}`,
		`{"path":"a.parquet"}`: "which duckdb or pyarrow reads", `{"path":"large.db#t"}`: `{"a":30000}`,
	} {
		a, err := call(t, Read(), roots, args)
		if err != nil || !strings.Contains(a.String(), want) {
			t.Errorf("%s: %.300s, %v", args, a.String(), err)
		}
	}
}
