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
// is broken: a [SyntaxError] after the records that are right. Lines of NDJSON that are no JSON are no records and have
// no number; the first of them is the error then, with Lines, or its Before.
//
// A row ends as RFC 4180 says: quoted fields may hold line ends, blank lines are no rows.
// With tabs as delimiter quotes mean nothing. A hunk ends where its header says.
func Records(ctx context.Context, r io.Reader, k Kind, visit func(index int64, at Span) bool) error {
	switch k {
	case JSON:
		return values(ctx, r, visit)
	case NDJSON:
		return lines(ctx, r, visit)
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

// Elements calls visit for each part of the one JSON value that r holds: the elements of an array, the members of an
// object, each from its key to the end of its value. A value of another type has none, and is not visited.
func Elements(ctx context.Context, r io.Reader, visit func(index int64, at Span) bool) error {
	return scanValues(ctx, r, func(e Event) bool { return e == ArrayStart || e == ObjectStart }, func(i int64, at Span, depth int) bool {
		return depth == 0 || visit(i, at)
	})
}

// values visits the elements of the first value, an array, or the values themselves.
func values(ctx context.Context, r io.Reader, visit func(int64, Span) bool) error {
	return scanValues(ctx, r, func(e Event) bool { return e == ArrayStart }, func(i int64, at Span, _ int) bool {
		return visit(i, at)
	})
}

// lines visits the values of NDJSON.
func lines(ctx context.Context, r io.Reader, visit func(int64, Span) bool) error {
	var l lineReader
	l.Quiet = 1 // only they are told
	var start int64
	l.lost = func() {}
	l.event = func(_ []byte, e Event) (enough bool) {
		switch {
		case e.Starts():
			start = l.off - 1
		case e.Ends():
			enough = !visit(l.values, Span{start, l.off})
		}
		return enough
	}
	return l.read(ctx, r)
}

// scanValues visits what stands in the first value where enters says so, at depth 1, else the values in a row, at depth 0.
func scanValues(ctx context.Context, r io.Reader, enters func(Event) bool, visit func(i int64, at Span, depth int) bool) error {
	var s Scanner
	s.Quiet = 2 // top-level values, and what stands right in the first
	level := 0
	var index, start int64
	first, keyed := true, false
	take := func(e Event) (enough bool) {
		switch {
		case first && e.Starts():
			first = false
			if enters(e) {
				level = 1
				return false
			}
			s.Quiet = 1
			start = s.Offset() - 1
		case e == KeyStart:
			start, keyed = s.Offset()-1, true
		case e.Ends() && s.Depth() < level:
			return true
		case e.Ends() && s.Depth() == level:
			enough = !visit(index, Span{start, s.Offset()}, level)
			index++
			keyed = false
		case e.Starts() && !keyed:
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
	inside := s.Inside()
	e, err := s.End()
	switch {
	case err != nil: // a number or literal that the end of a cut-off text ends may go on: it is no record
		return err
	case e != More && index > 0: // nor is one behind other values; alone it is all of the text
		return s.breaksOff(inside)
	}
	take(e)
	return nil
}
