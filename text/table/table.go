// Package table splits tables into rows and cells: CSV and its relatives, with a tab, comma, semicolon or | between
// cells. Everything that reads a table reads it by this package, so that a receipt, a filter and a slice agree.
//
// It reads RFC 4180 and its common variants: lines that end in CR alone, a first line "sep=;", blanks before a quoted
// cell and text after it, and a quote that is not closed. [Damage] says what is wrong with a table.
package table

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// HeadSize is the number of bytes at the start of a text that [DialectOf] needs, if the text has as many.
const HeadSize = 64 << 10

// Dialect is how a table is written.
type Dialect struct {
	Delimiter byte
	CR        bool // lines end in CR alone
	Skip      int  // bytes of a first line "sep=;", which names the delimiter
}

// counts are the limits of a scan that looks at the header and counts the cells of other rows.
var counts = Limits{MaxCell: 64, MaxCells: 1 << 10, HeaderOnly: true}

// DialectOf returns the dialect of a table that begins with head. The delimiter is the most frequent of tab, semicolon,
// | and comma outside quotes in the first row; a comma is the default.
func DialectOf(head []byte) Dialect {
	mark := len(head) - len(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	text := head[mark:]
	d := Dialect{Delimiter: ','}
	end := bytes.IndexAny(text, "\r\n")
	if end < 0 {
		end = len(text)
	}
	if end == len("sep=;") && bytes.EqualFold(text[:4], []byte("sep=")) {
		d.Delimiter = text[4]
		if end = min(end+1, len(text)); end < len(text) && text[end-1] == '\r' && text[end] == '\n' {
			end++
		}
		d.Skip, text = mark+end, text[end:]
	}
	d.CR = bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') >= 0
	if d.Skip > 0 {
		return d
	}
	most := 1
	for _, c := range []byte("\t;|,") {
		n := 0
		s := New(Dialect{Delimiter: c, CR: d.CR}, func(r *Row) bool { n = r.N; return false })
		if s.Limits = counts; s.Write(text) {
			s.End()
		}
		if n > most || n == most && c == ',' {
			d.Delimiter, most = c, n
		}
	}
	return d
}

// Header returns the range of the header: the first row.
func Header(ctx context.Context, r io.Reader) (header content.Span, err error) {
	err = Rows(ctx, r, func(row *Row) bool { header = row.At; return false })
	if errors.As(err, new(*content.Remarks)) {
		err = nil
	}
	return header, err
}

// Rows visits the rows of a table, including the header, until visit returns false. Only the header has cells.
// The error is that of [Read].
func Rows(ctx context.Context, r io.Reader, visit func(*Row) bool) error {
	return Read(ctx, r, counts, visit)
}

// Read visits the rows of a table, including the header, until visit returns false. If the rows up to there are
// damaged, the error is a [*content.Remarks].
func Read(ctx context.Context, r io.Reader, l Limits, visit func(*Row) bool) error {
	in := bufio.NewReaderSize(r, HeadSize)
	head, err := in.Peek(HeadSize)
	if err != nil && err != io.EOF {
		return err
	}
	s := New(DialectOf(head), visit)
	s.Limits = l
	for buf := make([]byte, HeadSize); ; {
		n, err := in.Read(buf)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !s.Write(buf[:n]):
			return s.damage.err()
		case err == io.EOF:
			s.End()
			return s.damage.err()
		case err != nil:
			return err
		}
	}
}
