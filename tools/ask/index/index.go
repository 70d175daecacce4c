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
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// version changes with the tables, the terms and the way in which texts are cut.
const version = 4

// weights of the fields in BM25: the path, the name of the file, the heading, and the text.
const weights = "2.0, 3.0, 4.0, 1.0"

// schema of a database. Times and sizes are those of [tree.Mark]. files.why says why a file has no passages; "" if it
// has, or is empty. covered has sums of listings that the index covers as it is: see [Index.Refresh]. The text of
// fts is not stored (content=”), only its terms.
const schema = `
CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mark TEXT NOT NULL, hash TEXT NOT NULL,
	bytes INTEGER NOT NULL, why TEXT NOT NULL);
CREATE TABLE covered (sum BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE chunks (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
	line INTEGER NOT NULL, code INTEGER NOT NULL, heading TEXT NOT NULL);
CREATE INDEX chunks_file ON chunks (file);
CREATE VIRTUAL TABLE fts USING fts5 (path, name, heading, body, content='', contentless_delete=1, tokenize='unicode61');
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
		"&_pragma=temp_store(MEMORY)&_pragma=cache_size(-64000)&_txlock=immediate"
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
	return x.write(ctx, func(tx *sql.Tx) error {
		var v int
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

// isDamaged reports whether an index has to be made again.
func isDamaged(err error) bool {
	if errors.Is(err, errVersion) {
		return true
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		code := s.Code() & 0xff
		return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_ERROR
	}
	return false
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

// scope restricts a search to some files.
type scope struct {
	where string // a condition on the table files, "" for all
	args  []any
	of    func(path string) bool // accepts a file; nil: all are accepted
}

// below restricts a search to a directory or file.
func below(path string) scope {
	if path == "." || path == "" {
		return scope{}
	}
	// 0 follows /
	return scope{where: "(path = ? OR path >= ? AND path < ?)", args: []any{path, path + "/", path + "0"}}
}

// SearchMany returns the best passages of the files below a directory for which of returns true: the index also has
// files that the glob of a question leaves out. It returns at most perFile passages of one file, so that a long file
// leaves room for others.
func (x *Index) SearchMany(
	ctx context.Context, terms []string, dir string, limit, perFile int, of func(path string) bool,
) ([]Hit, error) {
	in := below(dir)
	in.of = of
	return x.searchMany(ctx, terms, in, limit, perFile)
}

// SearchFiles returns the best passages of each of some files that have any of the terms, at most perFile of each.
func (x *Index) SearchFiles(ctx context.Context, terms, paths []string, perFile int) (map[string][]Hit, error) {
	only := scope{where: "path IN (?" + strings.Repeat(",?", len(paths)-1) + ")"}
	for _, p := range paths {
		only.args = append(only.args, p)
	}
	hits, err := x.searchMany(ctx, terms, only, max(1000, 10*perFile*len(paths)), perFile)
	byPath := map[string][]Hit{}
	for _, h := range hits {
		byPath[h.Path] = append(byPath[h.Path], h)
	}
	return byPath, err
}

func (x *Index) searchMany(ctx context.Context, terms []string, only scope, limit, perFile int) ([]Hit, error) {
	const rounds = 8 // of leaving out the files that have had their share
	var all []Hit
	var without []int64
	for range rounds {
		hits, err := x.search(ctx, terms, only, limit, without)
		if err != nil {
			return nil, err
		}
		count := map[string]int{}
		before := len(without)
		for _, h := range hits {
			if count[h.Path]++; count[h.Path] <= perFile {
				all = append(all, h)
			}
			if count[h.Path] == perFile+1 {
				without = append(without, h.file)
			}
		}
		if len(hits) < limit || len(all) >= limit || len(without) == before {
			break
		}
		all = slices.DeleteFunc(all, func(h Hit) bool { return !slices.Contains(without, h.file) }) // the others come again
	}
	slices.SortStableFunc(all, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(len(all), limit)], nil
}

// search returns the passages in a scope, without those of some files, that have any of the terms, the best first.
func (x *Index) search(ctx context.Context, terms []string, in scope, limit int, without []int64) ([]Hit, error) {
	if len(terms) == 0 {
		return nil, nil
	}
	query := `"` + strings.Join(terms, `" OR "`) + `"` // terms have no quotes
	args := []any{query}
	only := ""
	if in.where != "" {
		only = " AND " + in.where
		args = append(args, in.args...)
	}
	for _, id := range without {
		only += fmt.Sprintf(" AND id <> %d", id)
	}
	if only != "" { // without the +, FTS5 would run the query again for each rowid
		only = " AND +rowid IN (SELECT id FROM chunks WHERE file IN (SELECT id FROM files WHERE 1" + only + "))"
	}
	for most := limit; ; most *= 8 {
		// FTS5 sorts by itself, and the rest is looked up for the best alone.
		hits, err := x.hits(ctx, "SELECT "+place+", -s.score "+ // FTS5 has the best lowest
			"FROM (SELECT rowid, rank AS score FROM fts WHERE fts MATCH ?"+only+" ORDER BY rank LIMIT ?) s "+
			"CROSS JOIN chunks c ON c.id = s.rowid CROSS JOIN files f ON f.id = c.file ORDER BY s.score",
			append(slices.Clip(args), most)...)
		if err != nil {
			return nil, fmt.Errorf("search the index: %w", err)
		}
		whole := len(hits) < most
		if in.of != nil {
			hits = slices.DeleteFunc(hits, func(h Hit) bool { return !in.of(h.Path) })
		}
		if whole || len(hits) >= limit {
			return hits[:min(len(hits), limit)], nil
		}
	}
}

// place are the columns of a Hit before its score.
const place = "c.id, f.id, f.path, f.mark, c.start, c.stop, c.line, c.code, c.heading"

// hits runs a query for place and a score.
func (x *Index) hits(ctx context.Context, query string, args ...any) (all []Hit, err error) {
	rows, err := x.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var h Hit
		err := rows.Scan(&h.id, &h.file, &h.Path, &h.Mark, &h.Start, &h.End, &h.Line, &h.Code, &h.Heading, &h.Score)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, rows.Err()
}

// MarkText returns a mark as the index keeps it.
func MarkText(m tree.Mark) string {
	b := strconv.AppendInt(make([]byte, 0, 64), m.Size, 36)
	b = strconv.AppendInt(append(b, '.'), m.Modified, 36)
	b = strconv.AppendInt(append(b, '.'), m.Changed, 36)
	return string(strconv.AppendUint(append(b, '.'), m.Inode, 36))
}

// Rarity returns how rare each term is: 1 plus the logarithm of the number of passages over the number of those that
// have it, so 1 for a term that all have. It leaves out terms that no passage has of the files below a directory for
// which of returns true.
func (x *Index) Rarity(
	ctx context.Context, terms []string, dir string, of func(path string) bool,
) (map[string]float64, error) {
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
			has, err = x.has(ctx, term, dir, of)
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

// has reports whether a file below a directory for which of returns true has a term.
func (x *Index) has(ctx context.Context, term, dir string, of func(path string) bool) (bool, error) {
	query, args, in := "SELECT path FROM (SELECT rowid FROM fts WHERE fts MATCH ?) s "+
		"CROSS JOIN chunks c ON c.id = s.rowid CROSS JOIN files f ON f.id = c.file", []any{`"` + term + `"`}, below(dir)
	if in.where != "" {
		query += " WHERE " + in.where
	}
	rows, err := x.db.QueryContext(ctx, query, append(args, in.args...)...)
	if err != nil {
		return false, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			return false, err
		}
		if of(p) {
			return true, nil
		}
	}
	return false, rows.Err()
}
