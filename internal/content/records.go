package content

import (
	"context"
	"fmt"
	"io"
)

// Span is a value inside a JSON text or a record inside a table: bytes [Start, End).
type Span struct{ Start, End int64 }

// Records calls visit for each record of a text in order: the elements of a top-level JSON array,
// NDJSON lines (or concatenated values), CSV rows after the header, hunks of a diff. A JSON
// text whose top level is no array is taken as values in a row. It stops when visit
// returns false. It reads no more than it must and keeps nothing. The error says where the text
// is broken: a [SyntaxError] after the records that are right.
//
// A row ends as RFC 4180 says: quoted fields may hold line ends, blank lines are no rows.
// With tabs as delimiter quotes mean nothing. A hunk ends where its header says.
func Records(ctx context.Context, r io.Reader, k Kind, visit func(index int64, at Span) bool) error {
	switch k {
	case JSON, NDJSON:
		return values(ctx, r, k, visit)
	case Table:
		return rows(ctx, r, func(row int64, at Span) bool { return row == 0 || visit(row-1, at) })
	case Diff:
		return hunks(ctx, r, visit)
	}
	return fmt.Errorf("a %s has no records: json, ndjson, csv, tsv and diffs have", k)
}

// Header finds the header of a table: its first row.
func Header(ctx context.Context, r io.Reader) (Span, error) {
	var header Span
	err := rows(ctx, r, func(_ int64, at Span) bool { header = at; return false })
	return header, err
}

// Delimiter is what stands between the cells of a table, by its header: a tab, a semicolon or a comma.
func Delimiter(header []byte) byte { return delimiter(header) }

// values visits the elements of the first value, an array, or the values themselves.
func values(ctx context.Context, r io.Reader, k Kind, visit func(int64, Span) bool) error {
	var s Scanner
	s.Quiet = 2 // top-level values, and the elements of a top-level array
	level := 0
	if k == NDJSON {
		s.Quiet = 1
	}
	var index, start int64
	first := true
	take := func(e Event) (enough bool) {
		switch {
		case first && e.Starts():
			first = false
			if e == ArrayStart && k == JSON {
				level = 1
				return false
			}
			s.Quiet = 1
			start = s.Offset() - 1
		case e.Ends() && s.Depth() < level:
			return true
		case e.Ends() && s.Depth() == level:
			enough = !visit(index, Span{start, s.Offset()})
			index++
		case e.Starts():
			start = s.Offset() - 1
		}
		return enough
	}
	ended, err := pump(ctx, r, func(p []byte) (bool, error) {
		for len(p) > 0 {
			n, e := s.Scan(p)
			if take(e) {
				return true, nil
			}
			if err := s.Err(); err != nil {
				return false, err
			}
			p = p[n:]
		}
		return false, nil
	})
	if !ended || err != nil {
		return err
	}
	e, err := s.End()
	if err != nil { // a number or literal that the end of a cut-off text ends may go on: it is no record
		return err
	}
	take(e)
	return nil
}
