package jq

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quick decodes values that lie whole in memory, as [decoder] would, and only what the filter reads of them.
//
// It takes less than JSON allows: what is rare (invalid UTF-8, lone surrogates,
// deep nesting, the first key that stands twice) and what is wrong it refuses, without saying why. decoder then
// decides, so a refusal costs time and never an answer.
type quick struct {
	quickText
	text  string // b, where strings are parts of it
	share bool   // strings are parts of one copy of the text: where most of it is kept anyway
	twice bool   // that keys stand twice is known: the last one counts

	keys    [256]string
	strings [512]boxed
	sizes   [64]int // of the last array or object at each depth: the next one is likely as large
	scratch []byte

	lends      bool             // maps are taken back
	lent, free []map[string]any // those that are out, and those that are empty
}

// boxed is a short string that was seen, as a value: made once, not each time.
type boxed struct {
	s string
	v any
}

const (
	quickDepth  = 200 // nesting that is taken
	shortString = 24  // bytes of a string worth remembering
	mostHint    = 64  // elements room is made for before they are seen
	mostLent    = 256 // maps that are used again
)

// reset begins a new text.
func (q *quick) reset(b []byte, share, twice bool) {
	q.b, q.i, q.text, q.share, q.twice = b, 0, "", share, twice
}

// value decodes what n reads of the next value. False: refused.
func (q *quick) value(n *node, depth int) (any, bool) {
	if n.nothing() {
		return nil, q.skip(depth)
	}
	switch q.space() {
	case '{':
		return q.object(n.ofObject(), depth+1)
	case '[':
		return q.array(n.element(), depth+1)
	case '"':
		return q.string()
	case 't':
		return true, q.word("true")
	case 'f':
		return false, q.word("false")
	case 'n':
		return nil, q.word("null")
	}
	start := q.i
	if !q.number() {
		return nil, false
	}
	v := number(q.b[start:q.i])
	if _, ok := v.(json.Number); ok && q.share {
		v = json.Number(q.part(start, q.i))
	}
	return v, true
}

func (q *quick) object(n *node, depth int) (any, bool) {
	if depth > quickDepth {
		return nil, false
	}
	size := &q.sizes[depth%len(q.sizes)]
	m := q.lend(min(*size, mostHint))
	count := 0
	q.i++
	if q.space() == '}' {
		q.i++
		return m, true
	}
	for {
		key, at, read, ok := q.key(n)
		if !ok || q.space() != ':' {
			return nil, false
		}
		q.i++
		if read {
			v, ok := q.value(at, depth)
			if !ok {
				return nil, false
			}
			m[key] = v
			count++
		} else if !q.skip(depth) {
			return nil, false
		}
		switch q.space() {
		case ',':
			q.i++
		case '}':
			q.i++
			*size = len(m)
			return m, len(m) == count || q.twice
		default:
			return nil, false
		}
	}
}

// lend gives an empty map with room for so many.
func (q *quick) lend(size int) (m map[string]any) {
	if !q.lends || len(q.lent) == mostLent {
		return make(map[string]any, size)
	}
	if last := len(q.free) - 1; last >= 0 {
		m, q.free = q.free[last], q.free[:last]
	} else {
		m = make(map[string]any, size)
	}
	q.lent = append(q.lent, m)
	return m
}

// takeBack takes back the maps of values that nobody holds any more. Large ones are left: to empty them takes as long as they are large.
func (q *quick) takeBack() {
	for _, m := range q.lent {
		if len(m) <= mostHint {
			clear(m)
			q.free = append(q.free, m)
		}
	}
	clear(q.lent)
	q.lent = q.lent[:0]
}

func (q *quick) array(element *node, depth int) (any, bool) {
	if depth > quickDepth {
		return nil, false
	}
	q.i++
	if q.space() == ']' {
		q.i++
		return []any{}, true
	}
	size := &q.sizes[depth%len(q.sizes)]
	a := make([]any, 0, min(max(*size, 1), mostHint))
	for {
		v, ok := q.value(element, depth)
		if !ok {
			return nil, false
		}
		a = append(a, v)
		switch q.space() {
		case ',':
			q.i++
		case ']':
			q.i++
			*size = len(a)
			return a, true
		default:
			return nil, false
		}
	}
}

// key reads a name, and says what is read of its value, if anything.
func (q *quick) key(n *node) (key string, at *node, read, ok bool) {
	raw, ok := q.raw()
	if !ok {
		return "", nil, false, false
	}
	if n != nil && n.few != nil {
		for i := range n.few {
			if m := &n.few[i]; m.key == string(raw) {
				return m.key, m.at, true, true
			}
		}
		return "", nil, false, true
	}
	if n != nil && n.keys != nil { // most are not read, and never made a string
		if at, read = n.keys[string(raw)]; !read {
			return "", nil, false, true
		}
		return q.name(raw), at, true, true
	}
	at, read = n.member("")
	return q.name(raw), at, read, true
}

// name is a key as a string, the same for the same key where that is cheap.
func (q *quick) name(b []byte) string {
	k := &q.keys[hash(b)%uint32(len(q.keys))]
	if *k != string(b) {
		*k = string(b)
	}
	return *k
}

// string reads a string as a value.
func (q *quick) string() (any, bool) {
	start := q.i + 1
	b, ok := q.raw()
	if !ok {
		return nil, false
	}
	if len(b) <= shortString {
		s := &q.strings[hash(b)%uint32(len(q.strings))]
		if s.v == nil || s.s != string(b) {
			s.s = string(b)
			s.v = s.s
		}
		return s.v, true
	}
	if q.share && q.i-1-start == len(b) {
		return q.part(start, q.i-1), true
	}
	return string(b), true
}

// part is a part of the text as a string.
func (q *quick) part(from, to int) string {
	if q.text == "" {
		q.text = string(q.b)
	}
	return q.text[from:to]
}

// raw reads a string, and gives its bytes without escapes, until the next call.
func (q *quick) raw() ([]byte, bool) {
	if q.space() != '"' {
		return nil, false
	}
	start := q.i + 1
	end, wide := q.plain(start)
	if end < len(q.b) && q.b[end] == '"' {
		q.i = end + 1
		return q.b[start:end], !wide || utf8.Valid(q.b[start:end])
	}
	q.i = start - 1
	if !q.quoted() {
		return nil, false
	}
	b, err := jsontext.AppendUnquote(q.scratch[:0], q.b[start-1:q.i])
	q.scratch = shrink(b)
	return b, err == nil
}

// hash tells short texts apart, mostly.
func hash(b []byte) uint32 {
	h := uint32(len(b)) * 0x9e3779b1
	for _, c := range b[:min(len(b), shortString)] {
		h = (h ^ uint32(c)) * 0x01000193
	}
	return h ^ h>>15
}
