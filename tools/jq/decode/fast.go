package decode

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// FastDecoder decodes the parts of a value that a filter reads, to the same values as [Decoder]. The value must be in
// memory as a whole.
//
// It refuses rare JSON (invalid UTF-8, lone surrogates, deep nesting, the first duplicate key) and invalid JSON,
// without a reason. Decoder reads the refused value again, so a refusal takes time and changes no answer.
//
// The rows "jq: 200 MB, streamable" of docs/SPEED.md need it: with the slow decoder alone select takes 2.3 times as
// long, and without ReuseMaps 1.3 times.
type FastDecoder struct {
	scanner
	text  string // a copy of b if share is set and a string needed it
	share bool   // long strings are parts of text: for callers that hold most of the text
	twice bool   // a duplicate key was reported before: accept further ones

	keys    [256]string // cache, by hash
	strings [512]boxed  // cache, by hash
	sizes   [64]int     // size of the last array or object at each depth, to allocate the next one
	scratch []byte

	ReuseMaps  bool             // reuse maps after ReclaimMaps
	lent, free []map[string]any // maps in use, and empty maps
}

// boxed is a cached string, also as an interface value, so that it is allocated once.
type boxed struct {
	s string
	v any
}

const (
	shortString = 24  // length in bytes of the longest string that is cached
	mostHint    = 64  // elements that are allocated in advance, at most
	mostLent    = 256 // maps that are reused, at most
)

// Reset starts a new text.
func (q *FastDecoder) Reset(b []byte, share, twice bool) {
	q.b, q.Pos, q.text, q.share, q.twice = b, 0, "", share, twice
}

// Value decodes the parts of the next value that n reads. It returns false if it refuses the value.
func (q *FastDecoder) Value(n *Projection, depth int) (any, bool) {
	if n.Empty() {
		return nil, q.Skip(depth)
	}
	switch q.SkipSpace() {
	case '{':
		return q.object(n.OfObject(), depth+1)
	case '[':
		return q.array(n.Element(), depth+1)
	case '"':
		return q.string()
	case 't':
		return true, q.word("true")
	case 'f':
		return false, q.word("false")
	case 'n':
		return nil, q.word("null")
	}
	start := q.Pos
	if !q.number() {
		return nil, false
	}
	v := number(q.b[start:q.Pos])
	if _, ok := v.(json.Number); ok && q.share {
		v = json.Number(q.part(start, q.Pos))
	}
	return v, true
}

func (q *FastDecoder) object(n *Projection, depth int) (any, bool) {
	if depth > maxFastDepth {
		return nil, false
	}
	size := &q.sizes[depth%len(q.sizes)]
	m := q.lend(min(*size, mostHint))
	count := 0
	q.Pos++
	if q.SkipSpace() == '}' {
		q.Pos++
		return m, true
	}
	for {
		key, at, read, ok := q.key(n)
		if !ok || q.SkipSpace() != ':' {
			return nil, false
		}
		q.Pos++
		if read {
			v, ok := q.Value(at, depth)
			if !ok {
				return nil, false
			}
			m[key] = v
			count++
		} else if !q.Skip(depth) {
			return nil, false
		}
		switch q.SkipSpace() {
		case ',':
			q.Pos++
		case '}':
			q.Pos++
			*size = len(m)
			return m, len(m) == count || q.twice
		default:
			return nil, false
		}
	}
}

// lend returns an empty map with room for size members.
func (q *FastDecoder) lend(size int) (m map[string]any) {
	if !q.ReuseMaps || len(q.lent) == mostLent {
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

// ReclaimMaps clears the maps of all decoded values for reuse; the caller must hold none of these values. Large maps
// are dropped, since clearing a map takes time in proportion to its size.
func (q *FastDecoder) ReclaimMaps() {
	for _, m := range q.lent {
		if len(m) <= mostHint {
			clear(m)
			q.free = append(q.free, m)
		}
	}
	clear(q.lent)
	q.lent = q.lent[:0]
}

func (q *FastDecoder) array(element *Projection, depth int) (any, bool) {
	if depth > maxFastDepth {
		return nil, false
	}
	q.Pos++
	if q.SkipSpace() == ']' {
		q.Pos++
		return []any{}, true
	}
	size := &q.sizes[depth%len(q.sizes)]
	a := make([]any, 0, min(max(*size, 1), mostHint))
	for {
		v, ok := q.Value(element, depth)
		if !ok {
			return nil, false
		}
		a = append(a, v)
		switch q.SkipSpace() {
		case ',':
			q.Pos++
		case ']':
			q.Pos++
			*size = len(a)
			return a, true
		default:
			return nil, false
		}
	}
}

// key reads a key. read is true if n reads the value of the key; at says which parts of the value.
func (q *FastDecoder) key(n *Projection) (key string, at *Projection, read, ok bool) {
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
	if n != nil && n.Keys != nil { // most keys are not read and never become strings
		if at, read = n.Keys[string(raw)]; !read {
			return "", nil, false, true
		}
		return q.name(raw), at, true, true
	}
	at, read = n.Member("")
	return q.name(raw), at, read, true
}

// name returns a key as a string, from the cache if the key is there.
func (q *FastDecoder) name(b []byte) string {
	k := &q.keys[hash(b)%uint32(len(q.keys))]
	if *k != string(b) {
		*k = string(b)
	}
	return *k
}

// string reads a string.
func (q *FastDecoder) string() (any, bool) {
	start := q.Pos + 1
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
	if q.share && q.Pos-1-start == len(b) {
		return q.part(start, q.Pos-1), true
	}
	return string(b), true
}

// part returns a part of the shared copy of the text.
func (q *FastDecoder) part(from, to int) string {
	if q.text == "" {
		q.text = string(q.b)
	}
	return q.text[from:to]
}

// raw reads a string and returns its unescaped bytes, which are valid until the next call.
func (q *FastDecoder) raw() ([]byte, bool) {
	if q.SkipSpace() != '"' {
		return nil, false
	}
	start := q.Pos + 1
	end, wide := q.plain(start)
	if end < len(q.b) && q.b[end] == '"' {
		q.Pos = end + 1
		return q.b[start:end], !wide || utf8.Valid(q.b[start:end])
	}
	q.Pos = start - 1
	if !q.quoted() {
		return nil, false
	}
	b, err := jsontext.AppendUnquote(q.scratch[:0], q.b[start-1:q.Pos])
	q.scratch = shrink(b)
	return b, err == nil
}

// hash is a cheap hash of the first shortString bytes.
func hash(b []byte) uint32 {
	h := uint32(len(b)) * 0x9e3779b1
	for _, c := range b[:min(len(b), shortString)] {
		h = (h ^ uint32(c)) * 0x01000193
	}
	return h ^ h>>15
}
