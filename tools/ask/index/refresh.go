package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/text/words"
)

// File is a file that the index should cover.
type File struct {
	Path string // unique in the index; slash-separated
	Mark string // see [MarkText]
	Size int64
}

// Text is the content of a file.
type Text struct {
	Body   []byte
	Chunks []Chunk
	Why    string // why it has no passages, such as "binary", or may have others; "" if it has

	Meanings []byte // vectors of the passages, one after the other: see [embed.Packed]
}

// Status says how far an index covers files.
type Status struct {
	Files, Indexed int   // files that were asked for, and those whose version is in the index
	Bytes, Done    int64 // of the same
	Unsearchable   map[string]string
}

// Options of Refresh.
type Options struct {
	Below    string                                          // the directory whose files these are
	Keep     bool                                            // other files below it stay in the index
	Deadline time.Time                                       // no file is read after it; zero: no such time
	Ahead    func(ctx context.Context, files []File) error   // is called with the next files before they are read
	Alone    func(f File) bool                               // its text may be large: one such file is read at a time
	Read     func(ctx context.Context, f File) (Text, error) // is called concurrently
	Progress func(done, total int64)                         // bytes that are indexed or were read, and all
}

// ahead is how many files are passed to Options.Ahead.
const ahead = 64

// batch is how many bytes of text are indexed in one transaction.
const batch = 4 << 20

// Refresh brings the index up to date with the files: it reads those that changed. It ends without an error at the
// deadline; Status says how far it came.
func (x *Index) Refresh(ctx context.Context, files []File, o Options) (Status, error) {
	s := Status{Files: len(files), Unsearchable: map[string]string{}}
	known, err := x.known(ctx, o.Below, s.Unsearchable)
	if err != nil {
		return s, err
	}
	var due []File
	for _, f := range files {
		s.Bytes += f.Size
		if k, ok := known[f.Path]; ok && k.mark == f.Mark {
			s.Indexed++
			s.Done += f.Size
		} else {
			delete(s.Unsearchable, f.Path)
			due = append(due, f)
		}
		delete(known, f.Path)
	}
	if len(known) > 0 && !o.Keep {
		err := x.writeUntil(ctx, o.Deadline, func(tx *sql.Tx) error {
			for _, gone := range known {
				if err := drop(ctx, tx, gone.id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return s, fmt.Errorf("remove files from the index: %w", err)
		}
	}
	for p := range known {
		delete(s.Unsearchable, p)
	}
	// One batch is read and split while the one before it is written.
	var before []*passages
	written := make(chan error, 1)
	begun := s.Done
	for err == nil && (len(due) > 0 || before != nil) {
		var next []*passages
		next, err = o.read(ctx, due, func(n int64) {
			if begun += n; o.Progress != nil {
				o.Progress(begun, s.Bytes)
			}
		})
		if due = due[len(next):]; errors.Is(err, errLate) {
			due, err = nil, nil
		}
		if before != nil {
			switch failed := panics.Again(<-written); {
			case is(failed, sqlite3.SQLITE_BUSY) && ctx.Err() == nil: // the deadline is over
				return s, nil
			case failed != nil:
				return s, cmp.Or(err, fmt.Errorf("write the index: %w", failed))
			}
			s.add(before)
		}
		if before = next; before != nil {
			go func() {
				var failed error
				panics.Into(&failed, func() {
					failed = x.writeUntil(ctx, o.Deadline, func(tx *sql.Tx) error { return insert(ctx, tx, next) })
				})
				written <- failed
			}()
		}
	}
	return s, err
}

// add counts files that are in the index now.
func (s *Status) add(files []*passages) {
	for _, p := range files {
		s.Indexed++
		s.Done += p.Size
		if p.why != "" {
			s.Unsearchable[p.Path] = p.why
		}
	}
}

// errLate ends a refresh at its deadline.
var errLate = errors.New("the time is over")

// entry is what the index has of a file.
type entry struct {
	id   int64
	mark string
}

// known returns the files in the index below a directory, and why some of them cannot be searched.
func (x *Index) known(ctx context.Context, dir string, why map[string]string) (map[string]entry, error) {
	where, args := Scope{Below: dir}.condition()
	rows, err := x.db.QueryContext(ctx, "SELECT id, path, mark, why FROM files WHERE "+cmp.Or(where, "1"), args...)
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := map[string]entry{}
	for rows.Next() {
		var e entry
		var p, because string
		if err := rows.Scan(&e.id, &p, &e.mark, &because); err != nil {
			return nil, err
		}
		if all[p] = e; because != "" {
			why[p] = because
		}
	}
	return all, rows.Err()
}

func drop(ctx context.Context, tx *sql.Tx, id int64) error {
	for _, q := range []string{
		"DELETE FROM fts WHERE rowid IN (SELECT id FROM chunks WHERE file = ?)", "DELETE FROM chunks WHERE file = ?",
		"DELETE FROM files WHERE id = ?", "DELETE FROM meanings WHERE file = ?",
	} {
		if _, err := tx.ExecContext(ctx, q, id); err != nil {
			return err
		}
	}
	return nil
}

// passages are those of a file, with the terms of their fields.
type passages struct {
	File
	why              string
	chunks           []Chunk
	dir, name        string
	headings, bodies []string
	meanings         []byte
}

// read reads and splits the next files concurrently, until they hold a batch, and calls begin before each, one call at a
// time. With an error besides errLate it returns none.
func (o *Options) read(ctx context.Context, files []File, begin func(bytes int64)) (all []*passages, err error) {
	var state, alone sync.Mutex
	size := 0
	next := func(read int, failed error) *passages {
		state.Lock()
		defer state.Unlock()
		n := len(all)
		size += read
		if err = cmp.Or(err, failed); err != nil || n == len(files) || size >= batch {
			return nil
		}
		if !o.Deadline.IsZero() && time.Now().After(o.Deadline) {
			err = errLate
			return nil
		}
		begin(files[n].Size)
		if o.Ahead != nil && n%ahead == 0 {
			if err = o.Ahead(ctx, files[n:min(n+ahead, len(files))]); err != nil {
				return nil
			}
		}
		all = append(all, &passages{File: files[n]})
		return all[n]
	}
	readers := runtime.GOMAXPROCS(0)
	panics.Each(readers, readers, func(int) {
		for p := next(0, nil); p != nil; {
			p = next(p.read(ctx, o, &alone))
		}
	})
	if err != nil && !errors.Is(err, errLate) {
		return nil, err
	}
	return all, err
}

// read reads the file and sets the terms of its text. It returns the bytes that count in a batch.
func (p *passages) read(ctx context.Context, o *Options, alone *sync.Mutex) (int, error) {
	if o.Alone != nil && o.Alone(p.File) {
		alone.Lock()
		defer alone.Unlock()
	}
	t, err := o.Read(ctx, p.File)
	if err != nil {
		return 0, err
	}
	dir, name := path.Split(p.Path)
	p.dir, p.name, p.why, p.chunks, p.meanings = terms(dir), terms(name), t.Why, t.Chunks, t.Meanings
	for _, c := range t.Chunks {
		p.headings = append(p.headings, terms(c.Heading))
		p.bodies = append(p.bodies, terms(string(t.Body[c.Start:c.End])))
	}
	return len(t.Body) + 1<<10, nil
}

// insert writes files and their passages, in place of earlier versions.
func insert(ctx context.Context, tx *sql.Tx, files []*passages) error {
	var statements [4]*sql.Stmt
	for i, q := range []string{
		"SELECT id FROM files WHERE path = ?",
		"INSERT INTO files (path, mark, bytes, why) VALUES (?, ?, ?, ?)",
		"INSERT INTO chunks (file, start, stop, line, code, heading) VALUES (?, ?, ?, ?, ?, ?)",
		"INSERT INTO fts (rowid, path, name, heading, body) VALUES (?, ?, ?, ?, ?)",
	} {
		var err error
		if statements[i], err = tx.PrepareContext(ctx, q); err != nil {
			return err
		}
		defer func() { _ = statements[i].Close() }()
	}
	for _, p := range files {
		var old int64
		switch err := statements[0].QueryRowContext(ctx, p.Path).Scan(&old); {
		case err == nil:
			if err := drop(ctx, tx, old); err != nil {
				return err
			}
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		r, err := statements[1].ExecContext(ctx, p.Path, p.Mark, p.Size, p.why)
		if err != nil {
			return err
		}
		file, err := r.LastInsertId()
		if err != nil {
			return err
		}
		if len(p.meanings) > 0 {
			if _, err := tx.ExecContext(ctx, "INSERT INTO meanings VALUES (?, ?)", file, p.meanings); err != nil {
				return err
			}
		}
		for i, c := range p.chunks {
			r, err := statements[2].ExecContext(ctx, file, c.Start, c.End, c.Line, c.Code, c.Heading)
			if err != nil {
				return err
			}
			id, err := r.LastInsertId()
			if err != nil {
				return err
			}
			if _, err = statements[3].ExecContext(ctx, id, p.dir, p.name, p.headings[i], p.bodies[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// terms returns the terms of a text as FTS5 splits them again.
func terms(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	words.Each(text, func(term string, _, _ int) {
		b.WriteString(term)
		b.WriteByte(' ')
	})
	return b.String()
}
