package content

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// MaxQuoted is how long a quoted field may be. One that is longer is a stray
// quote: it ends its row where the line ends, rather than swallow the rest of the table.
const MaxQuoted = 1 << 20

// rows visits the rows of a table, the header too.
func rows(ctx context.Context, r io.Reader, visit func(row int64, at Span) bool) error {
	b := bufio.NewReaderSize(r, window)
	head, err := b.Peek(window)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t := rowScanner{delimiter: delimiter(head)}
	ended, err := pump(ctx, b, func(p []byte) (bool, error) { return !t.scan(p, visit), nil })
	if !ended || err != nil {
		return err
	}
	if t.start < t.off {
		t.end(t.off, t.off, visit)
	}
	return nil
}

type field uint8

const (
	fieldStart  field = iota
	fieldBare         // not quoted
	fieldQuoted       // inside quotes
	fieldQuote        // after a quote in a quoted field: its end, or the first of two
)

// rowScanner finds the rows of a table in pieces of any size.
type rowScanner struct {
	delimiter byte
	state     field
	off       int64 // of the piece
	start     int64 // of the row
	quoted    int64 // where the quoted field began
	row       int64
	cr        bool // the last byte was \r
}

// scan is false where visit had enough.
func (t *rowScanner) scan(p []byte, visit func(int64, Span) bool) bool {
	for i := 0; i < len(p); {
		if n := t.skip(p[i:], t.off+int64(i)); n > 0 {
			i += n
			t.cr = p[i-1] == '\r'
			continue
		}
		if !t.take(p[i], t.off+int64(i), visit) {
			return false
		}
		i++
	}
	t.off += int64(len(p))
	return true
}

// skip is how many bytes change nothing: most of a table.
func (t *rowScanner) skip(p []byte, at int64) int {
	n := 0
	switch {
	case t.state == fieldQuoted && at-t.quoted < MaxQuoted:
		p = p[:min(int64(len(p)), MaxQuoted-(at-t.quoted))] // so that where pieces end does not matter
		n = bytes.IndexByte(p, '"')
	case t.state == fieldBare:
		for n < len(p) && p[n] != '\n' && p[n] != t.delimiter {
			n++
		}
	}
	if n < 0 {
		return len(p)
	}
	return n
}

func (t *rowScanner) take(c byte, at int64, visit func(int64, Span) bool) bool {
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

// end visits the row that ends before at; the next begins at next. A blank line is no row.
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

// delimiter is the byte that stands most often between the fields of the first row: tab, comma or semicolon.
func delimiter(p []byte) byte {
	var tabs, commas, semicolons int
	quoted := false
scan:
	for _, c := range bytes.TrimLeft(p, "\r\n") {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			break scan
		case c == '\t':
			tabs++
		case c == ',':
			commas++
		case c == ';':
			semicolons++
		}
	}
	switch {
	case tabs > 0 && tabs >= commas && tabs >= semicolons:
		return '\t'
	case semicolons > commas:
		return ';'
	}
	return ','
}
