package source_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// addDatabase makes a database below a directory.
func addDatabase(t testing.TB, path string, statements ...string) {
	t.Helper()
	db := expect.Value(sql.Open("sqlite", path))(t, "open")
	for _, s := range statements {
		_, err := db.Exec(s)
		expect.Must(t, err, s)
	}
	expect.Must(t, db.Close())
}

// textAndNotes returns the text and the notes of a source.
func textAndNotes(t testing.TB, src *source.Source) (text, notes string, err error) {
	t.Helper()
	r := expect.Value(src.Text())(t, src.Name)
	all, err := io.ReadAll(r)
	return string(all), strings.Join(src.Notes(), "\n"), err
}

func workers(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be handed to workers there")
	}
}

// A database is the list of its tables, and a name with # the rows of one, unless a file has that name.
func TestDatabases(t *testing.T) {
	workers(t)
	dir := t.TempDir()
	addDatabase(t, filepath.Join(dir, "app#1.db"), `CREATE TABLE users(id INTEGER, name TEXT)`, `CREATE TABLE "b c"(x)`,
		`CREATE TABLE "d#e"(y)`, `INSERT INTO "d#e" VALUES (5)`,
		`INSERT INTO users VALUES (1, 'ann'), (2, CAST(x'ff' AS TEXT))`)
	addDatabase(t, filepath.Join(dir, "one"), `CREATE TABLE t(a)`, `INSERT INTO t VALUES (7)`)
	for name, text := range map[string]string{"app#1.db#file": "a file\n", "text.csv": "a,b\n", "app#1.db-wal": "0123456789"} {
		expect.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	roots := toolstest.Roots(t, dir)
	const list = `{"table":"users","rows":2,"columns":["id INTEGER","name TEXT"]}` + "\n" + `{"table":"b c","rows":0,"columns":["x"]}` + "\n" +
		`{"table":"d#e","rows":1,"columns":["y"]}` + "\n"
	const wal = "app#1.db-wal has 10 bytes of changes that are not read"
	for _, c := range []struct{ name, text, note, fails string }{
		{"app#1.db", list, "app#1.db is a SQLite database: these are its tables; app#1.db#TABLE names the rows of one", ""},
		{"app#1.db#users", `{"id":1,"name":"ann"}` + "\n" + `{"id":2,"name":"\\xff"}` + "\n",
			`app#1.db#users: texts not in UTF-8, whose bytes are shown as \xNN: 1`, ""},
		{"app#1.db#USERS", `{"id":1,`, wal, ""}, {`app#1.db#b c`, "", wal, ""}, {"app#1.db#file", "a file\n", "", ""},
		{"app#1.db#sqlite_schema", `{"type":"table","name":"users",`, wal, ""},
		{"app#1.db#no", "", "", "read app#1.db#no: it has no table no; its tables: users, b c, d#e"}, {"app#1.db#d#e", `{"y":5}` + "\n", wal, ""},
		{"app#1.db#", "", "", "no such file"},
		{"text.csv#t", "", "", "read text.csv#t: it is no SQLite database"}, {"no.db#t", "", "", "find lists the existing files"},
		{"one", `{"table":"t","rows":1,"columns":["a"]}` + "\n", "one is a SQLite database", ""},
	} {
		src, err := roots.Open(t.Context(), c.name)
		if c.fails != "" || err != nil {
			if err == nil || c.fails == "" || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", c.name, err, c.fails)
			}
			continue
		}
		text, notes, err := textAndNotes(t, src)
		if !strings.HasPrefix(text, c.text) || (c.text == "") != (text == "") || !strings.Contains(notes, c.note) || err != nil ||
			c.name != "app#1.db#file" && src.Kind() != content.NDJSON {
			t.Errorf("%s: %q, %q, %v", c.name, text, notes, err)
		}
		again, _, err := textAndNotes(t, src)
		if again != text || err != nil {
			t.Errorf("%s, again: %q, %v", c.name, again, err)
		}
		expect.Must(t, src.Close())
	}
	src := expect.Value(roots.Open(t.Context(), "one"))(t, "one")
	if src.Rows(); src.Name != "one#t" {
		t.Error(src.Name)
	}
	if text, notes, err := textAndNotes(t, src); text != `{"a":7}`+"\n" || notes != "" || err != nil {
		t.Errorf("%q, %q, %v", text, notes, err)
	}
	expect.Must(t, src.Close())
}

// A reader that is not read to its end holds no worker that others wait for.
func TestAbandonedReaders(t *testing.T) {
	workers(t)
	dir := t.TempDir()
	addDatabase(t, filepath.Join(dir, "a.db"), "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r")
	roots := toolstest.Roots(t, dir)
	for range 2*runtime.NumCPU() + 4 {
		src := expect.Value(roots.Open(t.Context(), "a.db#v"))(t, "a.db#v")
		for range 2 {
			b := make([]byte, 8)
			_, err := io.ReadFull(expect.Value(src.Text())(t, "text"), b)
			if expect.Must(t, err); string(b) != "{\"n\":1}\n" {
				t.Fatalf("%q", b)
			}
		}
		expect.Must(t, src.Close())
	}
}

// What lies beside a database or links to elsewhere is not read. Control: SQLite itself reads the WAL.
func TestNothingBesideADatabaseIsRead(t *testing.T) {
	workers(t)
	dir, outside := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "w.db")
	addDatabase(t, path, "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)", "PRAGMA journal_mode = wal")
	db := expect.Value(sql.Open("sqlite", path))(t, "open")
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, s := range []string{"PRAGMA wal_autocheckpoint = 0", "INSERT INTO t VALUES (2)"} {
		_, err := db.Exec(s)
		expect.Must(t, err, s)
	}
	wal := expect.Value(os.ReadFile(path+"-wal"))(t, "wal")
	count := 0
	if expect.Must(t, db.QueryRow("SELECT count(*) FROM t").Scan(&count)); count != 2 {
		t.Fatalf("the control has %d rows", count)
	}
	expect.Must(t, os.WriteFile(filepath.Join(outside, "x"), wal, 0o600))
	linked := filepath.Join(dir, "linked.db")
	expect.Must(t, os.WriteFile(linked, expect.Value(os.ReadFile(path))(t, path), 0o600))
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		expect.Must(t, os.Symlink(filepath.Join(outside, "x"), linked+end))
	}
	roots := toolstest.Roots(t, dir)
	for name, note := range map[string]string{"w.db#t": fmt.Sprintf("w.db-wal has %d bytes of changes", len(wal)), "linked.db#t": ""} {
		src := expect.Value(roots.Open(t.Context(), name))(t, name)
		text, notes, err := textAndNotes(t, src)
		if text != `{"a":1}`+"\n" || !strings.Contains(notes, note) || note == "" && notes != "" || err != nil {
			t.Errorf("%s: %q, %q, %v", name, text, notes, err)
		}
		expect.Must(t, src.Close())
	}
	if all := expect.Value(os.ReadDir(outside))(t, outside); len(all) != 1 {
		t.Errorf("%d files outside", len(all))
	}
}

// A damaged database stays binary, and a note says why; its tables end with an error or rows, never without a word.
func TestDamagedDatabases(t *testing.T) {
	workers(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	addDatabase(t, path, "PRAGMA page_size = 512", "CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
		"INSERT INTO t WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 300) SELECT n, 'row ' || n FROM r")
	whole := expect.Value(os.ReadFile(path))(t, path)
	roots := toolstest.Roots(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 24 {
		text := bytes.Clone(whole)
		switch i % 3 {
		case 0:
			text = text[:16+random.IntN(len(text)-16)]
		case 1:
			for range 1 + i*20 {
				text[16+random.IntN(len(text)-16)] = byte(random.Uint32())
			}
		case 2:
			clear(text[512*(1+i%4):][:512])
		}
		expect.Must(t, os.WriteFile(path, text, 0o600))
		if src, err := roots.Open(t.Context(), "a.db"); err != nil {
			t.Errorf("%d: %v", i, err)
		} else if _, notes, _ := textAndNotes(t, src); src.Kind() == content.Binary &&
			!strings.Contains(notes, "has no text that can be read (") {
			t.Errorf("%d: %q", i, notes)
		} else {
			expect.Must(t, src.Close())
		}
		src, err := roots.Open(t.Context(), "a.db#t")
		if err != nil {
			continue
		}
		rows, _, err := textAndNotes(t, src)
		if n := strings.Count(rows, "\n"); err == nil && n != 300 && i%3 == 0 {
			t.Errorf("%d: %d rows of 300, and no error", i, n)
		}
		for row := range strings.Lines(rows) {
			if !json.Valid([]byte(row)) {
				t.Errorf("%d: %q", i, row)
			}
		}
		expect.Must(t, src.Close())
	}
}
