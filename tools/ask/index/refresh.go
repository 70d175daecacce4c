package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

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
	Hash   string
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
	Below    string                                        // the directory whose files these are
	Keep     bool                                          // other files below it stay in the index
	Deadline time.Time                                     // no file is read after it; zero: no such time
	Ahead    func(ctx context.Context, files []File) error // is called with the next files before they are read
	Read     func(ctx context.Context, f File) (Text, error)
	Progress func(done, total int64) // bytes
}

// ahead is how many files are passed to Options.Ahead.
const ahead = 64

// batch is how many bytes of text are indexed in one transaction.
const batch = 8 << 20

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
		err := x.write(ctx, func(tx *sql.Tx) error {
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
	for len(due) > 0 {
		n, err := x.add(ctx, due, &s, o)
		due = due[n:]
		if errors.Is(err, errLate) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
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

// add reads files and indexes them in one transaction, until it holds a batch. It returns how many it took.
func (x *Index) add(ctx context.Context, files []File, s *Status, o Options) (n int, err error) {
	var texts []Text
	for size := 0; n < len(files) && size < batch; n++ {
		if !o.Deadline.IsZero() && time.Now().After(o.Deadline) {
			err = errLate
			break
		}
		if o.Progress != nil {
			o.Progress(s.Done, s.Bytes)
		}
		if o.Ahead != nil && n%ahead == 0 {
			if err := o.Ahead(ctx, files[n:min(n+ahead, len(files))]); err != nil {
				return 0, err
			}
		}
		t, err := o.Read(ctx, files[n])
		if err != nil {
			return 0, err
		}
		size += len(t.Body) + 1<<10
		texts = append(texts, t)
	}
	failed := x.write(ctx, func(tx *sql.Tx) error { return insert(ctx, tx, files[:n], texts) })
	if failed != nil {
		return 0, fmt.Errorf("write the index: %w", failed)
	}
	for i, f := range files[:n] {
		s.Indexed++
		s.Done += f.Size
		if texts[i].Why != "" {
			s.Unsearchable[f.Path] = texts[i].Why
		}
	}
	return n, err
}

// insert writes files and their passages, in place of earlier versions.
func insert(ctx context.Context, tx *sql.Tx, files []File, texts []Text) error {
	var statements [3]*sql.Stmt
	for i, q := range []string{
		"INSERT INTO files (path, mark, hash, bytes, why) VALUES (?, ?, ?, ?, ?)",
		"INSERT INTO chunks (file, start, stop, line, code, heading) VALUES (?, ?, ?, ?, ?, ?)",
		"INSERT INTO fts (rowid, path, name, heading, body) VALUES (?, ?, ?, ?, ?)",
	} {
		var err error
		if statements[i], err = tx.PrepareContext(ctx, q); err != nil {
			return err
		}
		defer func() { _ = statements[i].Close() }()
	}
	for i, f := range files {
		t := texts[i]
		var old int64
		switch err := tx.QueryRowContext(ctx, "SELECT id FROM files WHERE path = ?", f.Path).Scan(&old); {
		case err == nil:
			if err := drop(ctx, tx, old); err != nil {
				return err
			}
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		r, err := statements[0].ExecContext(ctx, f.Path, f.Mark, t.Hash, f.Size, t.Why)
		if err != nil {
			return err
		}
		file, err := r.LastInsertId()
		if err != nil {
			return err
		}
		if len(t.Meanings) > 0 {
			if _, err := tx.ExecContext(ctx, "INSERT INTO meanings VALUES (?, ?)", file, t.Meanings); err != nil {
				return err
			}
		}
		dir, name := path.Split(f.Path)
		dir, name = terms(dir), terms(name)
		for _, c := range t.Chunks {
			r, err := statements[1].ExecContext(ctx, file, c.Start, c.End, c.Line, c.Code, c.Heading)
			if err != nil {
				return err
			}
			id, err := r.LastInsertId()
			if err != nil {
				return err
			}
			_, err = statements[2].ExecContext(ctx, id, dir, name, terms(c.Heading), terms(string(t.Body[c.Start:c.End])))
			if err != nil {
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
