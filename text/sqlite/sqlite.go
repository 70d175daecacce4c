// Package sqlite reads the tables of SQLite databases as JSON records.
//
// A database may be hostile. It runs in a worker, and here SQLite gets one open file through a VFS that knows no other
// name; its schema is not trusted, and its memory and the length of values are bounded.
package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"modernc.org/sqlite" // also registers the driver
	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of a database.
const (
	maxValue  = 64 << 20        // bytes of one text or blob that is read
	maxHeap   = 160 << 20       // bytes that SQLite allocates
	maxCount  = 10_000_000      // rows of a table that are counted
	countTime = time.Second     // for counting them
	listTime  = 3 * time.Second // for counting those of all tables
)

// Is reports whether a file with these first bytes is a database.
func Is(prefix []byte) bool { return bytes.HasPrefix(prefix, []byte("SQLite format 3\x00")) }

// Open opens the database that a file holds. Nothing is written, and no other file is read.
func Open(ctx context.Context, file io.ReaderAt, size int64) (*sql.Conn, error) {
	name, _, err := vfs.New(only{io.NewSectionReader(file, 0, size)})
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?vfs=%s&immutable=1&_query_only=1&_defensive=1&_dqs=0&_error_rc=1"+
		"&_pragma=trusted_schema(off)&_pragma=cell_size_check(on)&_pragma=temp_store(memory)&_pragma=cache_size(-8192)"+
		"&_pragma=hard_heap_limit(%d)", fileName, name, maxHeap))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		_, err = sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValue)
		_, failed := sqlite.Limit(conn, sqlite3.SQLITE_LIMIT_ATTACHED, 0)
		err = errors.Join(err, failed)
	}
	return conn, err
}

// fileName is the only name in the file system of a database.
const fileName = "database"

// only is a file system with one file.
type only struct{ *io.SectionReader }

func (o only) Open(name string) (fs.File, error) {
	if name != fileName {
		return nil, fs.ErrNotExist
	}
	return o, nil
}

func (only) Close() error                 { return nil }
func (o only) Stat() (fs.FileInfo, error) { return info{size: o.Size()}, nil }

type info struct {
	fs.FileInfo // nil: only the size is asked for
	size        int64
}

func (i info) Size() int64 { return i.size }

// tables returns the names of the tables and views in the order in which they were made, without those of SQLite itself.
func tables(ctx context.Context, db *sql.Conn) (names []string, err error) {
	var list []byte
	err = db.QueryRowContext(ctx, `SELECT json_group_array(name) FROM sqlite_schema WHERE type IN ('table', 'view') `+
		`AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`).Scan(&list)
	if err == nil {
		err = json.Unmarshal(list, &names)
	}
	return names, err
}

// Find returns the name of a table or view as the database spells it. The error of an unknown one lists those there are.
func Find(ctx context.Context, db *sql.Conn, name string) (string, error) {
	names, err := tables(ctx, db)
	if err != nil {
		return "", err
	}
	all := append(names, "sqlite_schema") // the statements that made the others
	if i := slices.IndexFunc(all, func(known string) bool { return strings.EqualFold(known, name) }); i >= 0 {
		return all[i], nil
	}
	return "", fmt.Errorf("it has no table %s; its tables: %s", content.ClipBytes(name, 50),
		content.ClipBytes(content.VisibleLine(strings.Join(names, ", ")), 120))
}

// columnsOf returns the columns of a table, as SELECT * shows them.
func columnsOf(ctx context.Context, db *sql.Conn, table string) ([]*sql.ColumnType, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+quoted(table)+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	return rows.ColumnTypes()
}

// List writes a record for each table: {"table", "rows", "columns": ["NAME TYPE"]}; rows is "over N" if there are more
// than maxCount, null if the time was too short to count them.
func List(ctx context.Context, db *sql.Conn, w io.Writer) error {
	names, err := tables(ctx, db)
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	end := time.Now().Add(listTime)
	for _, name := range names {
		r := struct {
			Table   string   `json:"table"`
			Rows    any      `json:"rows"`
			Columns []string `json:"columns"`
			Error   string   `json:"error,omitempty"`
		}{Table: name}
		columns, err := columnsOf(ctx, db, name)
		for _, c := range columns {
			r.Columns = append(r.Columns, strings.TrimSpace(c.Name()+" "+c.DatabaseTypeName()))
		}
		if err == nil {
			short, cancel := context.WithTimeout(ctx, min(countTime, time.Until(end)))
			query := fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", quoted(name), maxCount+1)
			if err = db.QueryRowContext(short, query).Scan(&r.Rows); short.Err() != nil {
				r.Rows, err = nil, nil
			} else if r.Rows == int64(maxCount+1) {
				r.Rows = fmt.Sprintf("over %d", maxCount)
			}
			cancel()
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err := to.Encode(r); err != nil {
			return err
		}
	}
	return err
}

// Rows writes the rows of a table as JSON objects, one a line, with the columns of only; nil: all. The error is a
// [*content.Remarks] if all were written, but hold something that JSON cannot show. The rows of a view,
// which may have no end, end with an error after viewTime.
func Rows(ctx context.Context, db *sql.Conn, table string, only []string, viewTime time.Duration, out io.Writer) error {
	columns, err := columnsOf(ctx, db, table)
	if err != nil {
		return err
	}
	seen := odd{}
	var keys [][]byte // `"name":`
	var sized []bool  // a blob of the column is not read: its size comes in its place
	query := "SELECT 1"
	for _, c := range columns {
		name, declared := quoted(c.Name()), c.DatabaseTypeName()
		if only != nil && !slices.Contains(only, c.Name()) {
			continue
		}
		keys = append(keys, append(seen.appendText(nil, c.Name()), ':'))
		sized = append(sized, declared == "" || strings.Contains(declared, "BLOB"))
		if sized[len(keys)-1] {
			name = fmt.Sprintf("CASE typeof(%s) WHEN 'blob' THEN CAST(length(%[1]s) AS BLOB) ELSE %[1]s END", name)
		}
		query += ", +" + name // an expression has no declared type, by which the driver would change times
	}
	n, isView, outer := 0, false, ctx
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'view' AND name = ?", table).Scan(&isView)
	if err != nil {
		return err
	}
	if isView {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, viewTime)
		defer stop()
	}
	err = db.Raw(func(conn any) error {
		rows, err := conn.(driver.QueryerContext).QueryContext(ctx, query+" FROM "+quoted(table), nil)
		if err != nil {
			return err
		}
		w, values := bufio.NewWriterSize(out, 64<<10), make([]driver.Value, len(keys)+1)
		for err = rows.Next(values); err == nil && ctx.Err() == nil; err = rows.Next(values) {
			n++
			b := append(w.AvailableBuffer(), '{')
			for i, key := range keys {
				if i > 0 {
					b = append(b, ',')
				}
				b = seen.appendValue(append(b, key...), values[i+1], sized[i])
			}
			if _, err := w.Write(append(b, '}', '\n')); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			err = seen.remarks()
		} else if err == nil {
			err = ctx.Err()
		}
		return errors.Join(w.Flush(), err)
	})
	if err != nil && ctx.Err() != nil && outer.Err() == nil {
		return fmt.Errorf("the view %s had not ended after %v and %s: perhaps it has no end", table, viewTime,
			content.Plural(int64(n), "row", "rows"))
	}
	return err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// odd counts values that JSON cannot show, by the notes on them.
type odd map[string]int

func (o odd) remarks() error {
	var notes []string
	for note, n := range o {
		notes = append(notes, fmt.Sprintf("%s: %d", note, n))
	}
	if notes == nil {
		return nil
	}
	return &content.Remarks{Notes: slices.Sorted(slices.Values(notes))}
}

// appendValue appends a value as JSON; of a blob its size, which is in its place if sized is set.
func (o odd) appendValue(b []byte, value driver.Value, sized bool) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if math.Abs(v) < 1e15 {
			return strconv.AppendFloat(b, v, 'f', -1, 64)
		} else if !math.IsInf(v, 0) {
			return strconv.AppendFloat(b, v, 'e', -1, 64) // with digits alone it would be an integer
		}
		o["infinite numbers, shown as null"]++
	case string:
		return o.appendText(b, v)
	case []byte:
		if !sized {
			v = strconv.AppendInt(nil, int64(len(v)), 10)
		}
		return append(append(append(b, `{"blob":`...), v...), '}')
	}
	return append(b, "null"...)
}

// appendText appends a text as a JSON string.
func (o odd) appendText(b []byte, text string) []byte {
	if !utf8.ValidString(text) {
		o[`texts not in UTF-8, whose bytes are shown as \xNN`]++
		text = content.Visible(text, false)
	}
	b, _ = jsontext.AppendQuote(b, text) // it is UTF-8
	return b
}
