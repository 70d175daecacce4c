// Package index finds passages of files by their words: a full-text index in SQLite (FTS5), one database for a root.
//
// The index has the terms of passages and where they are, and no text: a passage is read from its file. It is a cache:
// if it is damaged, of another version or missing, it is built again.
package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// version changes with the tables, the terms and the way in which texts are cut.
const version = 6

// weights of the fields in BM25: the path, the name of the file, the heading, and the text.
const weights = "2.0, 3.0, 4.0, 1.0"

// schema of a database. Times and sizes are those of [tree.Mark]. files.why says why a file has no passages; "" if it
// has, or is empty. meanings has the vectors of the passages of a file, in their order. The text of fts is not stored
// (content=”), only its terms, which are split already: FTS5 need only split them at blanks. A batch of them is written
// at once (hashsize).
const schema = `
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mark TEXT NOT NULL,
	bytes INTEGER NOT NULL, why TEXT NOT NULL);
CREATE TABLE chunks (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
	line INTEGER NOT NULL, code INTEGER NOT NULL, heading TEXT NOT NULL);
CREATE TABLE meanings (file INTEGER PRIMARY KEY, vectors BLOB NOT NULL);
CREATE INDEX chunks_file ON chunks (file);
CREATE VIRTUAL TABLE fts USING fts5 (path, name, heading, body, content='', contentless_delete=1, tokenize='ascii');
INSERT INTO fts (fts, rank) VALUES ('hashsize', 8388608);
INSERT INTO fts (fts, rank) VALUES ('rank', 'bm25(` + weights + `)');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (fts, row);
`

// Index is the index of one root. It is safe for concurrent use, also by several processes.
type Index struct {
	db   *sql.DB
	file string
}

// Memory is the name of an index that is kept in memory.
const Memory = ":memory:"

// Open opens the index in a file, and makes it if it is missing, damaged or of another version.
func Open(ctx context.Context, file string) (*Index, error) {
	if file == Memory {
		return open(ctx, file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	x, err := open(ctx, file)
	if isDamaged(err) {
		if err := Remove(file); err != nil {
			return nil, err
		}
		x, err = open(ctx, file)
	}
	return x, err
}

var errVersion = errors.New("the index is of another version")

func open(ctx context.Context, file string) (*Index, error) {
	if file != Memory {
		f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let others read it
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	pragmas := "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)" +
		"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-16000)&_txlock=immediate"
	db, err := sql.Open("sqlite", "file:"+escaped.Replace(file)+pragmas)
	if err != nil {
		return nil, err
	}
	if db.SetMaxOpenConns(4); file == Memory {
		db.SetMaxOpenConns(1) // each connection would have a database of its own
	}
	x := &Index{db: db, file: file}
	if err := x.prepare(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return x, nil
}

// escaped makes a path one of a URI, as SQLite reads the name of a database.
var escaped = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// prepare makes the tables of a new database, and checks the version of an old one.
func (x *Index) prepare(ctx context.Context) error {
	var v int // read without the lock, which another process may hold while it indexes
	if err := x.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil || v == version {
		return err
	}
	return x.write(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil || v == version {
			return err
		}
		if v != 0 {
			return errVersion
		}
		_, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
}

// write runs do in one transaction.
func (x *Index) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// writeUntil is write that tries again until a time, if it is not zero, while other processes write: one that indexes
// leaves others little time.
func (x *Index) writeUntil(ctx context.Context, until time.Time, do func(*sql.Tx) error) error {
	for {
		err := x.write(ctx, do)
		if !is(err, sqlite3.SQLITE_BUSY) || ctx.Err() != nil || !until.IsZero() && time.Now().After(until) {
			return err
		}
	}
}

// isDamaged reports whether an index has to be made again.
func isDamaged(err error) bool {
	return IsDamaged(err) || errors.Is(err, errVersion) || is(err, sqlite3.SQLITE_ERROR)
}

// IsDamaged reports whether an error of a method shows that the file is damaged: it has to be removed.
func IsDamaged(err error) bool {
	return is(err, sqlite3.SQLITE_CORRUPT) || is(err, sqlite3.SQLITE_NOTADB)
}

// is reports whether an error of SQLite has a code.
func is(err error, code int) bool {
	s, ok := errors.AsType[*sqlite.Error](err)
	return ok && s.Code()&0xff == code
}

// Remove removes the index in a file; none is no error.
func Remove(file string) error {
	var failed error
	for _, f := range []string{file, file + "-wal", file + "-shm"} {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = err
		}
	}
	return failed
}

// Close closes the index.
func (x *Index) Close() error { return x.db.Close() }

// Hit is a passage that has words of a question.
type Hit struct {
	Path string // of the file, as it was given
	Mark string // of the file's version; see [MarkText]
	Chunk
	Score float64 // BM25, the higher the better
	file  int64
	id    int64 // of the passage
}

// Scope restricts a search to some files.
type Scope struct {
	Below string                 // a directory or file; "" and ".": all
	Paths []string               // the only files; nil: all
	Of    func(path string) bool // accepts a file; nil: all are accepted
}

// condition returns a condition on the table files, "" for all files.
func (s Scope) condition() (where string, args []any) {
	switch {
	case s.Paths != nil:
		for _, p := range s.Paths {
			args = append(args, p)
		}
		return "path IN (?" + strings.Repeat(",?", len(s.Paths)-1) + ")", args
	case s.Below == "." || s.Below == "":
		return "", nil
	}
	return "(path = ? OR path >= ? AND path < ?)", []any{s.Below, s.Below + "/", s.Below + "0"} // 0 follows /
}

// Search returns the best passages that have any of the terms, at most perFile of one file: a long file leaves room for
// others.
func (x *Index) Search(ctx context.Context, terms []string, in Scope, limit, perFile int) (all []Hit, err error) {
	if len(terms) == 0 {
		return nil, nil
	}
	args := []any{`"` + strings.Join(terms, `" OR "`) + `"`} // terms have no quotes
	// FTS5 sorts by itself, the best lowest; with a limit, SQLite keeps that order, and the rest is looked up row by row.
	score, only := "rank", ""
	if where, paths := in.condition(); where != "" {
		// Without the +, FTS5 would run the query again for each rowid. The column rank would score the rows of all files;
		// bm25 scores those that the condition leaves.
		score = "bm25(fts, " + weights + ")"
		only = " AND +rowid IN (SELECT id FROM chunks WHERE file IN (SELECT id FROM files WHERE " + where + "))"
		args = append(args, paths...)
	}
	count := map[int64]int{}
	err = x.each(ctx, "SELECT "+place+", -s.score FROM (SELECT rowid, "+score+" AS score FROM fts WHERE fts MATCH ?"+only+
		" ORDER BY score LIMIT -1) s CROSS JOIN chunks c ON c.id = s.rowid CROSS JOIN files f ON f.id = c.file",
		args, func(h Hit) bool {
			if count[h.file] < perFile && (in.Of == nil || in.Of(h.Path)) {
				count[h.file]++
				all = append(all, h)
			}
			return len(all) < limit
		})
	if err != nil {
		return nil, fmt.Errorf("search the index: %w", err)
	}
	return all, nil
}

// place are the columns of a Hit before its score.
const place = "c.id, f.id, f.path, f.mark, c.start, c.stop, c.line, c.code, c.heading"

// fields returns the targets of a scan: the columns of place, then one more.
func (h *Hit) fields(last any) []any {
	return []any{&h.id, &h.file, &h.Path, &h.Mark, &h.Start, &h.End, &h.Line, &h.Code, &h.Heading, last}
}

// each visits the rows of a query for place and a score, until visit returns false.
func (x *Index) each(ctx context.Context, query string, args []any, visit func(Hit) bool) error {
	rows, err := x.db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for more := true; more && rows.Next(); {
		var h Hit
		if err := rows.Scan(h.fields(&h.Score)...); err != nil {
			return err
		}
		more = visit(h)
	}
	return rows.Err()
}

// MarkText returns a mark as the index keeps it.
func MarkText(m tree.Mark) string {
	b := strconv.AppendInt(make([]byte, 0, 64), m.Size, 36)
	b = strconv.AppendInt(append(b, '.'), m.Modified, 36)
	b = strconv.AppendInt(append(b, '.'), m.Changed, 36)
	return string(strconv.AppendUint(append(b, '.'), m.Inode, 36))
}

// Rarity returns how rare each term is: 1 plus the logarithm of the number of passages over the number of those that
// have it, so 1 for a term that all have. It leaves out terms that no passage in a scope has.
func (x *Index) Rarity(ctx context.Context, terms []string, in Scope) (map[string]float64, error) {
	var all float64
	if err := x.db.QueryRowContext(ctx, "SELECT count(*) FROM chunks").Scan(&all); err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	rare := map[string]float64{}
	for _, term := range terms {
		var having float64
		err := x.db.QueryRowContext(ctx, "SELECT doc FROM vocabulary WHERE term = ?", term).Scan(&having)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		has := false
		if err == nil {
			has, err = x.has(ctx, term, in)
		}
		if err != nil {
			return nil, fmt.Errorf("read the index: %w", err)
		}
		if has {
			rare[term] = 1 + math.Log((all+1)/(having+1))
		}
	}
	return rare, nil
}

// has reports whether a file in a scope has a term.
func (x *Index) has(ctx context.Context, term string, in Scope) (found bool, err error) {
	where, args := in.condition()
	err = x.each(ctx, "SELECT "+place+", 0.0 FROM (SELECT rowid FROM fts WHERE fts MATCH ?) s "+
		"CROSS JOIN chunks c ON c.id = s.rowid CROSS JOIN files f ON f.id = c.file WHERE "+cmp.Or(where, "1"),
		append([]any{`"` + term + `"`}, args...), func(h Hit) bool {
			found = in.Of == nil || in.Of(h.Path)
			return !found
		})
	return found, err
}
