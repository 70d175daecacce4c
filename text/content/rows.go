package content

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// MaxQuoted is the maximum length of a quoted field, in bytes. In a longer field the quote is a stray one: the row
// ends at the next newline, so that a stray quote does not swallow the rest of the table.
const MaxQuoted = 1 << 20

// Header returns the range of the header of a table: its first row.
func Header(ctx context.Context, r io.Reader) (Span, error) {
	var header Span
	err := Rows(ctx, r, func(_ int64, at Span) bool { header = at; return false })
	return header, err
}

// Rows visits the rows of a table, including the header, until visit returns false. Rows end as in RFC 4180: quoted
// fields may contain newlines. Empty lines are no rows. If the delimiter is a tab, quotes have no meaning.
func Rows(ctx context.Context, r io.Reader, visit func(row int64, at Span) bool) error {
	b := bufio.NewReaderSize(r, window)
	head, err := b.Peek(window)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t := rowScanner{delimiter: Delimiter(head)}
	ended, err := pump(ctx, b, func(p []byte) (bool, error) { return !t.scan(p, visit), nil })
	if !ended || err != nil {
		return err
	}
	if t.start < t.off {
		t.end(t.off, t.off, visit)
	}
	return nil
}

// RowsOf visits the rows of a text in memory until visit returns false. It visits a last row without a newline only
// if whole is true.
func RowsOf(p []byte, whole bool, visit func(row []byte) bool) {
	t := rowScanner{delimiter: Delimiter(p)}
	more := t.scan(p, func(_ int64, at Span) bool { return visit(p[at.Start:at.End]) })
	if whole && more && t.start < int64(len(p)) {
		visit(bytes.TrimSuffix(p[t.start:], []byte{'\r'}))
	}
}

type field uint8

const (
	fieldStart  field = iota
	fieldBare         // in an unquoted field
	fieldQuoted       // inside quotes
	fieldQuote        // after a quote in a quoted field: the closing quote, or the first of an escaped pair
)

// rowScanner finds the rows of a table that arrives in blocks of any size.
type rowScanner struct {
	delimiter byte
	state     field
	off       int64 // offset of the block
	start     int64 // offset of the row
	quoted    int64 // offset of the quote that opened the current field
	row       int64 // index of the row
	cr        bool  // the last byte was \r
}

// scan processes the next block. It returns false if visit did.
func (t *rowScanner) scan(p []byte, visit func(int64, Span) bool) bool {
	for i := 0; i < len(p); {
		if n := t.skip(p[i:], t.off+int64(i)); n > 0 {
			i += n
			t.cr = p[i-1] == '\r'
			continue
		}
		if !t.processByte(p[i], t.off+int64(i), visit) {
			return false
		}
		i++
	}
	t.off += int64(len(p))
	return true
}

// skip returns how many bytes at the start of p do not change the state. Most of a table is skipped this way.
func (t *rowScanner) skip(p []byte, at int64) (n int) {
	switch {
	case t.state == fieldQuoted && at-t.quoted < MaxQuoted:
		// From MaxQuoted on the next newline ends the row: stop there, so that block sizes do not change the result.
		p = p[:min(int64(len(p)), MaxQuoted-(at-t.quoted))]
		if n := bytes.IndexByte(p, '"'); n >= 0 {
			return n
		}
		return len(p)
	case t.state == fieldBare:
		for n < len(p) && p[n] != '\n' && p[n] != t.delimiter {
			n++
		}
	}
	return n
}

// processByte processes the byte c at offset at. It returns false if visit did.
func (t *rowScanner) processByte(c byte, at int64, visit func(int64, Span) bool) bool {
	if t.state == fieldQuote {
		t.state = fieldBare
		if c == '"' {
			t.state, t.cr = fieldQuoted, false
			return true
		}
	}
	switch {
	case c == '\n' && (t.state != fieldQuoted || at-t.quoted >= MaxQuoted):
		return t.end(at, at+1, visit)
	case t.state == fieldQuoted:
		if c == '"' {
			t.state = fieldQuote
		}
	case c == t.delimiter:
		t.state = fieldStart
	case c == '"' && t.state == fieldStart && t.delimiter != '\t':
		t.state, t.quoted = fieldQuoted, at
	default:
		t.state = fieldBare
	}
	t.cr = c == '\r'
	return true
}

// end visits the row whose newline is at offset at, unless the line is empty; the next row begins at offset next. It
// returns false if visit did.
func (t *rowScanner) end(at, next int64, visit func(int64, Span) bool) bool {
	span := Span{t.start, at}
	if t.cr {
		span.End--
	}
	t.start, t.state, t.cr = next, fieldStart, false
	if span.End <= span.Start {
		return true
	}
	t.row++
	return visit(t.row-1, span)
}

// Delimiter returns the delimiter of a table: the most frequent of tab, comma and semicolon outside quotes in its
// first row. A comma is the default.
func Delimiter(p []byte) byte {
	var count [256]int
	quoted := false
	for _, c := range bytes.TrimLeft(p, "\r\n") {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			if c == '\n' {
				break
			}
			count[c]++
		}
	}
	switch tabs, commas, semicolons := count['\t'], count[','], count[';']; {
	case tabs > 0 && tabs >= commas && tabs >= semicolons:
		return '\t'
	case semicolons > commas:
		return ';'
	}
	return ','
}
