package content

import (
	"context"
	"io"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// Leaf is a JSON value without children: a string, number or literal.
type Leaf struct {
	Pointer string
	Value   string // a string's text, unescaped and without quotes; a number or literal as written
	Text    bool   // the value is a string
	Member  bool   // the value is a member of an object, neither an array element nor a top-level value
}

// Leaves calls visit for every leaf of a JSON or NDJSON text, in order, until visit returns false. A value longer
// than max bytes, as written, is truncated to max bytes and ends with "…"; a pointer is truncated to 4 KiB likewise.
// In NDJSON the first token of the pointer is the record number. For invalid JSON, Leaves visits the leaves before
// the error and then returns a [SyntaxError].
func Leaves(ctx context.Context, r io.Reader, k Kind, max int, visit func(Leaf) bool) error {
	l := leafReader{max: max, visit: visit, records: k == NDJSON}
	ended, err := scanEvents(ctx, r, &l.Tracker, l.event)
	if !ended || err != nil {
		return err
	}
	e, err := l.End()
	if l.event(nil, e) {
		return nil
	}
	return err
}

type leafReader struct {
	Tracker
	max     int
	visit   func(Leaf) bool
	records bool

	inside  bool // within a leaf
	raw     []byte
	long    bool // raw is truncated
	scratch []byte
}

func (l *leafReader) event(used []byte, e Event) (enough bool) {
	if e == StringStart || e == NumberStart || e == LiteralStart {
		l.inside, l.raw, l.long = true, l.raw[:0], false
		used = used[len(used)-1:]
	}
	if l.inside {
		if room := l.max + 2 - len(l.raw); len(used) > room { // two bytes more than max, for the quotes
			used, l.long = used[:room], true
		}
		l.raw = append(l.raw, used...)
	}
	if e != StringEnd && e != NumberEnd && e != LiteralEnd {
		return false
	}
	l.inside = false
	raw := l.raw
	if e == StringEnd {
		raw = raw[1:]
		if !l.long {
			raw = raw[:len(raw)-1]
		}
	}
	return !l.leaf(raw, e == StringEnd)
}

// leaf visits one value. It returns the result of visit: false to stop.
func (l *leafReader) leaf(raw []byte, text bool) bool {
	if len(raw) > l.max {
		raw, l.long = raw[:l.max], true
	}
	value := l.scratch[:0]
	if text {
		value = AppendUnquoted(value, raw)
	} else {
		value = append(value, raw...)
	}
	if l.long {
		value = append(value[:runes.Complete(value)], "…"...)
	}
	l.scratch = value

	depth := l.Depth()
	pointer := string(l.Pointer(depth))
	if l.records {
		n := l.Values()
		if depth == 0 {
			n-- // this leaf is the record, and was counted
		}
		pointer = "/" + strconv.FormatInt(n, 10) + pointer
	}
	return l.visit(Leaf{Pointer: pointer, Value: string(value), Text: text, Member: depth > 0 && l.IsObject(depth-1)})
}
