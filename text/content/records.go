package content

import (
	"context"
	"io"
)

// Span is the range of a value, row or hunk in a text: bytes [Start, End).
type Span struct{ Start, End int64 }

// Elements calls visit for each child of the JSON value in r: the elements of an array or the members of an object.
// The range of a member goes from its key to the end of its value. A scalar has no children and causes no calls.
func Elements(ctx context.Context, r io.Reader, visit func(index int64, at Span) bool) error {
	return scanValues(ctx, r, Event.Opens, func(i int64, at Span, depth int) bool {
		return depth == 0 || visit(i, at)
	})
}

// Starts calls visit with the offset at which each child of the JSON value in r begins, a member with its key, until
// visit returns false. It calls visit before it reads the child, which may be of any length, or broken.
func Starts(ctx context.Context, r io.Reader, visit func(index, start int64) bool) error {
	var s Scanner
	s.Quiet = 2 // events of top-level values and of their children only
	index, keyed := int64(-1), false
	ended, err := scanEvents(ctx, r, &s, func(_ []byte, e Event) (enough bool) {
		begins := e == KeyStart || e.Starts() && s.Around(e) == 1 && !keyed
		keyed = e == KeyStart || keyed && !e.Starts()
		if begins {
			index++
		}
		return begins && !visit(index, s.Offset()-1) || e.Ends() && s.Depth() == 0
	})
	if ended && err == nil {
		_, err = s.End()
	}
	return err
}

// Values visits the elements of the first value if it is an array, else the top-level values, until visit returns
// false. For an invalid text it visits the values before the error and then returns a [SyntaxError].
func Values(ctx context.Context, r io.Reader, visit func(int64, Span) bool) error {
	return scanValues(ctx, r, func(e Event) bool { return e == ArrayStart }, func(i int64, at Span, _ int) bool {
		return visit(i, at)
	})
}

// LineValues visits the values of NDJSON until visit returns false. Invalid lines are skipped and not numbered. The
// error is then a [SyntaxError] for the first of them, with their number in Lines; after a later error that ends the
// text, the [SyntaxError] for the first invalid line is its Before.
func LineValues(ctx context.Context, r io.Reader, visit func(int64, Span) bool) error {
	var l lineReader
	l.Quiet = 1 // events of top-level values only
	var start int64
	l.discard = func() {}
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

// scanValues visits the children of the first value, with depth 1, if enters returns true for its start event. Else
// it visits the top-level values, with depth 0.
func scanValues(
	ctx context.Context, r io.Reader, enters func(Event) bool, visit func(i int64, at Span, depth int) bool,
) error {
	var s Scanner
	s.Quiet = 2 // events of top-level values and of their children only
	level := 0
	var index, start int64
	first, keyed := true, false
	event := func(_ []byte, e Event) (enough bool) {
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
	ended, err := scanEvents(ctx, r, &s, event)
	if !ended || err != nil {
		return err
	}
	inside := s.Inside()
	e, err := s.End()
	switch {
	case err != nil: // the text is truncated: its last number or literal may be incomplete, so do not visit it
		return err
	case e != More && index > 0: // a number or literal at the end, after other values, may be truncated too
		return s.truncated(inside)
	}
	event(nil, e)
	return nil
}
