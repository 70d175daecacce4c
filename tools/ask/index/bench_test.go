package index

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/kinds"
)

// library returns the files of a part of Go's library.
func library(b *testing.B) (dir string, files []File) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	dir = filepath.Join(strings.TrimSpace(string(out)), "src", "net")
	err = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		at, err := e.Info()
		rel, _ := filepath.Rel(dir, p)
		files = append(files, File{Path: rel, Mark: "1", Size: at.Size()})
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return dir, files
}

func readFrom(dir string) func(context.Context, File) (Text, error) {
	return func(ctx context.Context, f File) (Text, error) {
		body, err := os.ReadFile(filepath.Join(dir, f.Path))
		return Text{Body: body, Chunks: Chunks(ctx, f.Path, kinds.Sniff(body, true, f.Path), body)}, err
	}
}

func fill(b *testing.B, dir string, files []File) *Index {
	b.Helper()
	x, err := Open(b.Context(), filepath.Join(b.TempDir(), "a.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = x.Close() })
	if s, err := x.Refresh(b.Context(), files, Options{Read: readFrom(dir)}); err != nil || !s.whole() {
		b.Fatal(s, err)
	}
	return x
}

// fillPlain puts the same passages into a table of FTS5 as they are.
func fillPlain(b *testing.B, dir string, files []File) *sql.DB {
	b.Helper()
	const pragmas = "?_pragma=synchronous(NORMAL)&_pragma=journal_mode(WAL)"
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "b.db")+pragmas)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Exec("CREATE VIRTUAL TABLE fts USING fts5 (body, content='')"); err != nil {
		b.Fatal(err)
	}
	add, err := tx.Prepare("INSERT INTO fts (body) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	read := readFrom(dir)
	for _, f := range files {
		t, err := read(b.Context(), f)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range t.Chunks {
			if _, err := add.Exec(string(t.Body[c.Start:c.End])); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
	return db
}

// BenchmarkBuild compares making an index with making a plain one: at most 3 times the time.
func BenchmarkBuild(b *testing.B) {
	dir, files := library(b)
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			fill(b, dir, files)
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			fillPlain(b, dir, files)
		}
	})
}

// BenchmarkQuery compares a search with one of a plain index: at most twice the time.
func BenchmarkQuery(b *testing.B) {
	dir, files := library(b)
	x, db := fill(b, dir, files), fillPlain(b, dir, files)
	terms := []string{"close", "connect", "timeout", "respons"}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			if hits, err := x.searchBelow(b.Context(), terms, ".", 20); err != nil || len(hits) != 20 {
				b.Fatal(len(hits), err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			rows, err := db.Query("SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT 20",
				`"close" OR "connection" OR "timeout" OR "response"`)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for rows.Next() {
				n++
			}
			if err := rows.Close(); err != nil || n != 20 {
				b.Fatal(n, err)
			}
		}
	})
}

// BenchmarkUnchanged finds that 20,000 files are as they were.
func BenchmarkUnchanged(b *testing.B) {
	dir, few := library(b)
	var files []File
	for i := range 20_000 {
		p := strings.Repeat("d/", i%5) + few[i%len(few)].Path + string(rune('a'+i/len(few)))
		files = append(files, File{Path: p, Mark: "1"})
	}
	x, err := Open(b.Context(), filepath.Join(b.TempDir(), "a.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	read := func(context.Context, File) (Text, error) { return Text{}, nil }
	for b.Loop() {
		if s, err := x.Refresh(b.Context(), files, Options{Read: read}); err != nil || !s.whole() {
			b.Fatal(dir, s, err)
		}
	}
}
