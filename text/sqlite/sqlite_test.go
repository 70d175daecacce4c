package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/sqlite"
)

// made returns the path of a database that statements made.
func made(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made.db")
	db := expect.Value(sql.Open("sqlite", path))(t, "open")
	for _, s := range statements {
		_, err := db.Exec(s)
		expect.Must(t, err, s)
	}
	expect.Must(t, db.Close())
	return path
}

// opened opens the database of a file as a worker does, from the open file alone.
func opened(t testing.TB, text []byte) (*sql.Conn, error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), bytes.NewReader(text), int64(len(text)))
	if db != nil {
		t.Cleanup(func() { _ = db.Close() })
	}
	return db, err
}

// rows returns the rows of a table and the notes on them.
func rows(t testing.TB, path, table string, only ...string) (text string, notes string, err error) {
	t.Helper()
	db := expect.Value(opened(t, expect.Value(os.ReadFile(path))(t, path)))(t, path)
	var out bytes.Buffer
	err = sqlite.Rows(t.Context(), db, table, only, time.Minute, &out)
	if said, ok := errors.AsType[*content.Remarks](err); ok {
		notes, err = strings.Join(said.Notes, "; "), nil
	}
	return out.String(), notes, err
}

// Values keep their type: integers all digits, a date its text, a blob its size.
func TestValues(t *testing.T) {
	path := made(t, `CREATE TABLE "a ""b" (i INTEGER, r REAL, s TEXT, "b c" BLOB, d DATETIME, j, g AS (i + 1))`,
		`INSERT INTO "a ""b" VALUES (9223372036854775807, 1e300, 'ü"' || char(10), x'000102', '2026-01-02 03:04:05', NULL)`,
		`INSERT INTO "a ""b" VALUES (-1, 9e999, CAST(x'ff41' AS TEXT), 'text', 5, x'00')`,
		`INSERT INTO "a ""b" VALUES ('word', 5, CAST(x'fe' AS TEXT), 1.5, zeroblob(70000000), 2)`)
	text, notes, err := rows(t, path, `a "b`)
	want := `{"i":9223372036854775807,"r":1e+300,"s":"ü\"\n","b c":{"blob":3},"d":"2026-01-02 03:04:05",` +
		`"j":null,"g":9.223372036854776e+18}` + "\n" + `{"i":-1,"r":null,"s":"\\xffA","b c":"text","d":5,"j":{"blob":1},"g":0}` + "\n"
	if text != want {
		t.Errorf("got  %swant %s", text, want)
	}
	if err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("a blob of 70 MB in a column that is none: %v", err)
	}
	if notes != "" {
		t.Errorf("notes %q of a table that ended with an error", notes)
	}
	text, notes, err = rows(t, path, `a "b`, "r", "s", "no such")
	if strings.Count(text, "\n") != 3 || !strings.HasSuffix(text, `{"r":5,"s":"\\xfe"}`+"\n") || err != nil ||
		notes != `infinite numbers, shown as null: 1; texts not in UTF-8, whose bytes are shown as \xNN: 2` {
		t.Errorf("%s, %q, %v", text, notes, err)
	}
	if text, _, err := rows(t, path, `a "b`, "no such"); text != "{}\n{}\n{}\n" || err != nil {
		t.Errorf("no column: %q, %v", text, err)
	}
}

// A large blob of a column of blobs is not read.
func TestLargeBlob(t *testing.T) {
	path := made(t, "CREATE TABLE t(a BLOB)", "INSERT INTO t VALUES (zeroblob(70000000))")
	if text, notes, err := rows(t, path, "t"); text != `{"a":{"blob":70000000}}`+"\n" || notes != "" || err != nil {
		t.Errorf("%q, %q, %v", text, notes, err)
	}
}

// The rows are those that the sqlite3 program shows, in databases of three encodings and with a table without rowids.
func TestRowsAreThoseOfSQLite3(t *testing.T) {
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("sqlite3 is not installed")
	}
	for _, encoding := range []string{"UTF-8", "UTF-16le", "UTF-16be"} {
		statements := []string{
			"PRAGMA encoding = '" + encoding + "'", "PRAGMA page_size = 512",
			"CREATE TABLE t(a INTEGER PRIMARY KEY, b REAL, c TEXT, d NUMERIC, e INT)",
			"CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID", "ALTER TABLE t ADD COLUMN f TEXT DEFAULT 'later'",
			"CREATE VIEW v AS SELECT c, sum(b) AS s FROM t GROUP BY c ORDER BY c DESC",
		}
		for i := range 50 {
			statements = append(statements, fmt.Sprintf("INSERT INTO t(b, c, d, e) VALUES (%g, '%s', '%d', %d)",
				float64(i)/8, strings.Repeat("ä€😀\t", i%90), i*i, math.MaxInt64-i), fmt.Sprintf("INSERT INTO w VALUES ('k%d', %d)", i*7%50, i))
		}
		path := made(t, statements...)
		for _, table := range []string{"t", "w", "v"} {
			text, notes, err := rows(t, path, table)
			expect.Must(t, err)
			if notes != "" {
				t.Error(notes)
			}
			want := expect.Value(exec.Command(program, "-json", path, "SELECT * FROM "+table).Output())(t, program)
			var ours, theirs []map[string]any
			for line := range strings.Lines(text) {
				ours = append(ours, decoded[map[string]any](t, line))
			}
			theirs = decoded[[]map[string]any](t, string(want))
			if len(ours) != len(theirs) || len(ours) == 0 {
				t.Fatalf("%s %s: %d rows, not %d", encoding, table, len(ours), len(theirs))
			}
			for i := range ours {
				if fmt.Sprint(ours[i]) != fmt.Sprint(theirs[i]) {
					t.Fatalf("%s %s, row %d: %.300v, not %.300v", encoding, table, i, ours[i], theirs[i])
				}
			}
		}
	}
}

// decoded decodes JSON: integers with all their digits, other numbers as float64.
func decoded[T any](t *testing.T, text string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	expect.Must(t, d.Decode(&v))
	all, single := any(v).([]map[string]any)
	if !single {
		all = []map[string]any{any(v).(map[string]any)}
	}
	for _, row := range all {
		for k, v := range row {
			if n, ok := v.(json.Number); ok && len(n) < 17 || strings.Contains(fmt.Sprint(v), ".") && ok {
				row[k] = expect.Value(n.Float64())(t, k)
			}
		}
	}
	return v
}

// A list has what can be known within its time, and says what cannot.
func TestList(t *testing.T) {
	path := made(t, "CREATE TABLE a(x INTEGER, y)", "INSERT INTO a VALUES (1, 2), (3, 4)", "CREATE INDEX i ON a(x)",
		"CREATE VIEW v AS SELECT x AS z FROM a", "CREATE VIEW broken AS SELECT nope FROM absent",
		"CREATE VIEW stuck AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r WHERE n < 0",
		"CREATE VIRTUAL TABLE f USING fts5(body)")
	db := expect.Value(opened(t, expect.Value(os.ReadFile(path))(t, path)))(t, path)
	var out bytes.Buffer
	expect.Must(t, sqlite.List(t.Context(), db, &out))
	for _, want := range []string{
		`{"table":"a","rows":2,"columns":["x INTEGER","y"]}`, `{"table":"v","rows":2,"columns":["z INTEGER"]}`,
		`{"table":"broken","rows":null,"columns":null,"error":"SQL logic error: no such table: main.absent (1)"}`,
		`{"table":"stuck","rows":null,"columns":["n"]}`, `{"table":"f","rows":0,"columns":["body"]}`,
	} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, &out)
		}
	}
	if _, err := sqlite.Find(t.Context(), db, "nope"); err == nil || !strings.Contains(err.Error(), "its tables: a, v, broken") {
		t.Errorf("unknown table: %v", err)
	}
	if name, err := sqlite.Find(t.Context(), db, "BROKEN"); name != "broken" || err != nil {
		t.Errorf("%s, %v", name, err)
	}
}

// Many tables are listed, and reading a table of theirs does not wait for the counts.
func TestManyTables(t *testing.T) {
	statements := []string{"BEGIN"}
	for i := range 2000 {
		statements = append(statements, fmt.Sprintf("CREATE TABLE t%d(a)", i))
	}
	path := made(t, strings.Join(append(statements, "COMMIT"), ";"))
	db := expect.Value(opened(t, expect.Value(os.ReadFile(path))(t, path)))(t, path)
	var out bytes.Buffer
	expect.Must(t, sqlite.List(t.Context(), db, &out))
	if n := strings.Count(out.String(), "\n"); n != 2000 {
		t.Errorf("%d tables", n)
	}
}

// A view that never gives a row ends with the context.
func TestStuckView(t *testing.T) {
	path := made(t, "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r WHERE n < 0")
	db := expect.Value(opened(t, expect.Value(os.ReadFile(path))(t, path)))(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := sqlite.Rows(ctx, db, "v", nil, time.Minute, &bytes.Buffer{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// A view that has no end, with rows or without, ends with an error that says how many were read.
func TestEndlessView(t *testing.T) {
	const endless = " AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT "
	path := made(t, "CREATE VIEW v"+endless+"n FROM r", "CREATE VIEW none"+endless+"count(*) FROM r")
	for view, want := range map[string]string{"v": "rows: perhaps it has no end", "none": " and 0 rows: perhaps"} {
		db := expect.Value(opened(t, expect.Value(os.ReadFile(path))(t, path)))(t, path)
		var out bytes.Buffer
		err := sqlite.Rows(t.Context(), db, view, nil, 30*time.Millisecond, &out)
		if text := out.String(); err == nil || !strings.Contains(err.Error(), "the view "+view+" had not ended after 30ms and ") ||
			!strings.Contains(err.Error(), want) || !strings.HasSuffix("\n"+text, "\n") {
			t.Errorf("%s: %.50q, %v", view, out.String(), err)
		}
	}
}

// A schema reaches no other file and changes nothing. Controls: SQLite itself, without these bounds, does all of it.
func TestSchemaReachesNothing(t *testing.T) {
	dir := t.TempDir()
	secret := made(t, "CREATE TABLE s(a)", "INSERT INTO s VALUES ('secret')")
	path := made(t, "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)",
		"CREATE VIEW load AS SELECT load_extension('/nonexistent.so')", "CREATE VIEW one AS SELECT a FROM t",
		"CREATE TRIGGER g INSTEAD OF INSERT ON one BEGIN INSERT INTO t VALUES (new.a); END",
		"CREATE VIEW pages AS SELECT count(*) FROM dbstat",
		"CREATE VIEW pragmas AS SELECT * FROM pragma_database_list")
	before := expect.Value(os.ReadFile(path))(t, path)
	db := expect.Value(opened(t, before))(t, path)
	control := expect.Value(expect.Value(sql.Open("sqlite", path))(t, path).Conn(t.Context()))(t, path)
	defer func() { _ = control.Close() }()
	for _, statement := range []string{
		"ATTACH '" + secret + "' AS other", "INSERT INTO one VALUES (2)", "CREATE TABLE made(a)",
		"VACUUM INTO '" + filepath.Join(dir, "copy.db") + "'", "SELECT * FROM pragmas",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: done", statement)
		}
		_, err := control.ExecContext(t.Context(), statement)
		expect.Must(t, err, statement, "of the control")
	}
	for _, view := range []string{"load", "pragmas"} {
		if err := sqlite.Rows(t.Context(), db, view, nil, time.Minute, &bytes.Buffer{}); err == nil {
			t.Errorf("the rows of %s came", view)
		}
	}
	if made := expect.Value(os.ReadDir(dir))(t, dir); len(made) != 1 {
		t.Errorf("%d files, not that of the control alone", len(made))
	}
}

// FuzzDatabase reads damaged databases: they end with rows, a list or an error.
func FuzzDatabase(f *testing.F) {
	path := made(f, "PRAGMA page_size = 512", "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB)", "CREATE INDEX i ON t(b)",
		"CREATE VIEW v AS SELECT b FROM t WHERE a > 1", "CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID",
		"INSERT INTO t VALUES (1, 'one', x'00'), (2, 'two', zeroblob(2000)), (3, printf('%.900c', 'x'), NULL)",
		"INSERT INTO w VALUES ('a', 1), ('b', 2.5)")
	whole := expect.Value(os.ReadFile(path))(f, path)
	f.Fuzz(func(t *testing.T, at, width uint16, b byte, cut uint16) {
		text := bytes.Clone(whole)
		for i := range width % 32 {
			text[(int(at)+int(i)*37)%len(text)] ^= b + byte(i)
		}
		if cut > 0 {
			text = text[:int(cut)%len(text)]
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		db, err := opened(t, text)
		if err != nil {
			return
		}
		var list bytes.Buffer
		_ = sqlite.List(ctx, db, &list)
		for line := range bytes.Lines(list.Bytes()) {
			var table struct{ Table string }
			if err := json.Unmarshal(line, &table); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			var out bytes.Buffer
			err := sqlite.Rows(ctx, db, table.Table, nil, time.Minute, &out)
			for row := range bytes.Lines(out.Bytes()) {
				if !json.Valid(row) {
					t.Fatalf("%s: a row that is no JSON: %q, %v", table.Table, row, err)
				}
			}
		}
	})
}
