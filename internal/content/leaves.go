package content

import (
	"context"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
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
	ended, err := pump(ctx, r, l.window)
	if !ended || err != nil {
		return err
	}
	e, err := l.End()
	if l.event(e) {
		return nil
	}
	return err
}

type leafReader struct {
	Tracker
	max     int
	visit   func(Leaf) bool
	records bool

	item    Item
	inside  bool // within a scalar that [Scanner.Item] did not read
	raw     []byte
	long    bool
	scratch []byte
}

func (l *leafReader) window(p []byte) (enough bool, err error) {
	for len(p) > 0 {
		if n := l.Item(p, &l.item); n > 0 {
			if it := &l.item; it.Event != ObjectStart && it.Event != ArrayStart &&
				!l.leaf(p[it.From:it.To], it.Event == StringEnd, false) {
				return true, nil
			}
			p = p[n:]
			continue
		}
		n, e := l.Scan(p)
		if l.inside {
			l.add(p[:n])
		} else if e == StringStart || e == NumberStart || e == LiteralStart {
			l.inside, l.raw, l.long = true, l.raw[:0], false
			l.add(p[n-1 : n])
		}
		if l.event(e) {
			return true, nil
		}
		if err := l.Err(); err != nil {
			return false, err
		}
		p = p[n:]
	}
	return false, nil
}

func (l *leafReader) add(p []byte) {
	// Two bytes more than max, for the quotes.
	if room := l.max + 2 - len(l.raw); len(p) > room {
		p, l.long = p[:room], true
	}
	l.raw = append(l.raw, p...)
}

func (l *leafReader) event(e Event) (enough bool) {
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
	return !l.leaf(raw, e == StringEnd, l.long)
}

// leaf visits one value; long means that raw is truncated. It returns the result of visit: false to stop.
func (l *leafReader) leaf(raw []byte, text, long bool) bool {
	if len(raw) > l.max {
		raw, long = raw[:l.max], true
	}
	value := l.scratch[:0]
	if text {
		value = appendUnquoted(value, raw)
	} else {
		value = append(value, raw...)
	}
	if long {
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
		pointer = recordPointer(n, pointer)
	}
	return l.visit(Leaf{Pointer: pointer, Value: string(value), Text: text, Member: depth > 0 && l.IsObject(depth-1)})
}
