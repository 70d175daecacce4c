package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// quoted returns a name as SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Table is a table or view.
type Table struct {
	Name string `json:"table"`
	Type string `json:"type"` // "table" or "view"
}

// Tables returns the tables and views in the order in which they were made, without those of SQLite itself.
func (d *Database) Tables() (all []Table, err error) {
	s, err := d.prepare(`SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for {
		more, err := s.next()
		if !more || err != nil {
			return all, err
		}
		all = append(all, Table{string(s.text(0)), string(s.text(1))})
	}
}

// Find returns the name of a table or view as the database spells it. The error of an unknown one lists what there is.
func (d *Database) Find(name string) (string, error) {
	all, err := d.Tables()
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range append(all, Table{Name: "sqlite_schema"}) { // that has the statements which made the others
		if strings.EqualFold(t.Name, name) {
			return t.Name, nil
		}
		names = append(names, t.Name)
	}
	if names = names[:len(names)-1]; len(names) == 0 {
		return "", fmt.Errorf("it has no table %s, and no other", content.ClipBytes(name, 100))
	}
	return "", fmt.Errorf("it has no table %s; its tables: %s", content.ClipBytes(name, 100),
		content.ClipBytes(content.VisibleLine(strings.Join(names, ", ")), 300))
}

// column is a column of a result.
type column struct {
	name, declared string // its type may be ""
	key            []byte // `"name":`
	isBlob         int    // the column of the result that says whether this one is the size of a blob; 0: none
}

// columns returns the columns of a table as SELECT * shows them.
func (d *Database) columns(table string) (all []column, err error) {
	s, err := d.prepare("SELECT * FROM " + quoted(table))
	if err != nil {
		return nil, err
	}
	defer s.close()
	for i := range sqlite3.Xsqlite3_column_count(s.tls, s.at) {
		c := column{name: libc.GoString(sqlite3.Xsqlite3_column_name(s.tls, s.at, i))}
		if at := sqlite3.Xsqlite3_column_decltype(s.tls, s.at, i); at != 0 {
			c.declared = libc.GoString(at)
		}
		c.key = append(appendText(nil, []byte(c.name), nil), ':')
		all = append(all, c)
	}
	return all, nil
}

// List writes a record for each table: {"table","type","rows","columns"}; rows is "over N" or null if the time was too
// short to count them.
func (d *Database) List(ctx context.Context, w io.Writer) error {
	all, err := d.Tables()
	if err != nil {
		return err
	}
	d.limit.Store(int64(tableTime / tick))
	end := time.Now().Add(countTime)
	var line []byte
	for _, t := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		line = appendText(append(line[:0], `{"table":`...), []byte(t.Name), nil)
		line = append(append(line, `,"type":"`...), t.Type...)
		columns, err := d.columns(t.Name)
		rows := "null"
		if err == nil {
			rows, err = d.count(t.Name, end)
		}
		line = append(append(append(line, `","rows":`...), rows...), `,"columns":{`...)
		for i, c := range columns {
			if i > 0 {
				line = append(line, ',')
			}
			line = appendText(append(line, c.key...), []byte(c.declared), nil)
		}
		line = append(line, '}')
		if err != nil {
			line = appendText(append(line, `,"error":`...), []byte(err.Error()), nil)
		}
		if _, err := w.Write(append(line, '}', '\n')); err != nil {
			return err
		}
	}
	return nil
}

// count returns the number of rows as JSON.
func (d *Database) count(table string, end time.Time) (string, error) {
	s, err := d.prepare("SELECT 1 FROM " + quoted(table))
	if err != nil {
		return "null", err
	}
	defer s.close()
	end = time.Now().Add(min(tableTime, time.Until(end)))
	for n := int64(0); ; n++ {
		late := n%1024 == 0 && time.Now().After(end)
		more, err := false, errTime
		if !late {
			more, err = s.next()
		}
		switch {
		case errors.Is(err, errTime) && n == 0:
			return "null", nil
		case errors.Is(err, errTime):
			return fmt.Sprintf(`"over %d"`, n), nil
		case err != nil:
			return "null", err
		case !more:
			return strconv.FormatInt(n, 10), nil
		}
	}
}

// Rows writes the rows of a table as JSON objects, one a line; of the columns only those given, nil for all. It returns
// notes on values that JSON cannot show.
func (d *Database) Rows(ctx context.Context, table string, only []string, out io.Writer) (notes []string, err error) {
	columns, err := d.columns(table)
	if err != nil {
		return nil, err
	}
	if only != nil {
		columns = slices.DeleteFunc(columns, func(c column) bool { return !slices.Contains(only, c.name) })
	}
	var names, kinds []string
	for i := range columns {
		c := &columns[i]
		name := quoted(c.name)
		if c.declared == "" || strings.Contains(strings.ToUpper(c.declared), "BLOB") { // its content need not be read
			c.isBlob = len(columns) + len(kinds)
			kinds = append(kinds, "typeof("+name+")='blob'")
			name = "CASE WHEN typeof(" + name + ")='blob' THEN length(" + name + ") ELSE " + name + " END"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		names = []string{"1"}
	}
	s, err := d.prepare("SELECT " + strings.Join(append(names, kinds...), ",") + " FROM " + quoted(table))
	if err != nil {
		return nil, err
	}
	defer s.close()
	w := bufio.NewWriterSize(out, 64<<10)
	defer func() { err = errors.Join(err, w.Flush()) }()
	var seen odd
	for n := int64(0); ; n++ {
		more, err := s.next()
		if errors.Is(err, errTime) {
			err = fmt.Errorf("no row came for %g s", rowTime.Seconds())
		}
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return seen.notes(), fmt.Errorf("after %d rows: %w", n, err)
		}
		if !more {
			return seen.notes(), nil
		}
		if _, err := w.Write(s.appendRow(w.AvailableBuffer(), columns, &seen)); err != nil {
			return nil, err
		}
	}
}

// appendRow appends a row and a newline.
func (s *statement) appendRow(b []byte, columns []column, seen *odd) []byte {
	b = append(b, '{')
	for i := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		c := &columns[i]
		b = append(b, c.key...)
		at := int32(i)
		switch sqlite3.Xsqlite3_column_type(s.tls, s.at, at) {
		case sqlite3.SQLITE_INTEGER:
			n := sqlite3.Xsqlite3_column_int64(s.tls, s.at, at)
			if c.isBlob > 0 && sqlite3.Xsqlite3_column_int64(s.tls, s.at, int32(c.isBlob)) == 1 {
				b = appendBlob(b, n)
			} else {
				b = strconv.AppendInt(b, n, 10)
			}
		case sqlite3.SQLITE_FLOAT:
			b = seen.appendFloat(b, sqlite3.Xsqlite3_column_double(s.tls, s.at, at))
		case sqlite3.SQLITE_TEXT:
			b = appendText(b, s.text(i), seen)
		case sqlite3.SQLITE_BLOB:
			b = appendBlob(b, int64(sqlite3.Xsqlite3_column_bytes(s.tls, s.at, at)))
		default:
			b = append(b, "null"...)
		}
	}
	return append(b, '}', '\n')
}

func appendBlob(b []byte, size int64) []byte {
	return append(strconv.AppendInt(append(b, `{"blob":`...), size, 10), '}')
}

// odd counts values that JSON cannot show.
type odd struct{ texts, numbers int64 }

func (o *odd) notes() (all []string) {
	if o.texts > 0 {
		all = append(all, content.Plural(o.texts, "text is", "texts are")+` not UTF-8: such bytes are shown as \xNN`)
	}
	if o.numbers > 0 {
		all = append(all, content.Plural(o.numbers, "number is", "numbers are")+" infinite: shown as null")
	}
	return all
}

// appendFloat appends a number with a point or exponent, as it is not an integer.
func (o *odd) appendFloat(b []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		o.numbers++
		return append(b, "null"...)
	}
	from := len(b)
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, 64)
	if !slices.ContainsFunc(b[from:], func(c byte) bool { return c == '.' || c == 'e' }) {
		b = append(b, '.', '0')
	}
	return b
}

// appendText appends a text as a JSON string. Bytes that are not UTF-8 become \xNN.
func appendText(b, text []byte, seen *odd) []byte {
	if !utf8.Valid(text) {
		if seen != nil {
			seen.texts++
		}
		var valid []byte
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			if r == utf8.RuneError && n == 1 {
				valid = fmt.Appendf(valid, `\x%02x`, text[0])
			} else {
				valid = append(valid, text[:n]...)
			}
			text = text[n:]
		}
		text = valid
	}
	b, _ = jsontext.AppendQuote(b, text) // it is UTF-8
	return b
}
