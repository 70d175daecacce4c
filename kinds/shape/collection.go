package shape

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// filesDepth is the maximum number of keys on the way to an array whose elements count as matches.
const filesDepth = 2

// collection is a sequence of values that are sampled as records: the elements of the top-level array, the values of
// NDJSON, or the elements of an array that is nested in objects only.
type collection struct {
	pointer string // JSON pointer of the array
	filter  string // jq filter of the elements
	depth   int    // number of keys in pointer
	top     bool   // the elements are the records of the text
	of      *node
	n       int64             // number of complete elements
	files   digest.FileCounts // files named by the elements
	start   int64             // offset of the first element that is a container; 0 if there is none
	samples []sample
}

// collect adds a collection for the array that begins. If there are too many, collect first drops the smallest: all
// others have ended, because collections are never nested.
func (s *shape) collect(elem *node) *collection {
	c := &collection{of: elem, top: len(s.containers) == 0, depth: len(s.containers)}
	c.pointer, c.filter = s.pointer(), s.filter()
	if len(s.collections) < collections {
		s.collections = append(s.collections, c)
		return c
	}
	least := 0
	for i, old := range s.collections {
		if old.less(s.collections[least]) {
			least = i
		}
	}
	s.collections[least] = c
	return c
}

// less reports whether c is less worth showing than d: arrays of objects come before others, then the longer one.
func (c *collection) less(d *collection) bool {
	if c, d := c.of.object != nil, d.of.object != nil; c != d {
		return d
	}
	return c.n < d.n
}

// largest returns the collection most worth showing, at most depth keys deep; nil if there is none.
func (s *shape) largest(depth int) (most *collection) {
	for _, c := range s.collections {
		if c.depth <= depth && (most == nil || most.less(c)) {
			most = c
		}
	}
	return most
}

// pointer returns the RFC 6901 pointer of the current member.
func (s *shape) pointer() string {
	var b strings.Builder
	for _, f := range s.containers {
		b.WriteByte('/')
		b.WriteString(content.EscapeToken(f.name))
	}
	return b.String()
}

// filter returns the jq filter of the elements of the current member.
func (s *shape) filter() string {
	var b strings.Builder
	for _, f := range s.containers {
		b.WriteByte('.')
		if isIdentifier(f.name) {
			b.WriteString(f.name)
		} else {
			quoted, _ := jsontext.AppendQuote(nil, f.name)
			b.Write(quoted)
		}
	}
	if b.Len() == 0 {
		return ".[]"
	}
	return b.String() + "[]"
}

// isIdentifier reports whether jq accepts a key after a dot without quotes.
func isIdentifier(key string) bool {
	for i := range len(key) {
		if c := key[i]; !digest.IsWord[c] || i == 0 && c-'0' <= 9 || c >= 0x80 {
			return false
		}
	}
	return key != ""
}

// placeOf returns the place of a new key of the current object: [digest.PlaceOf] for a key of an element, and for
// data.path.text inside of it.
func (s *shape) placeOf(raw []byte) uint8 {
	last := len(s.containers) - 1
	if s.containers[last].starts {
		return digest.PlaceOf(raw)
	}
	if last < 2 || !s.containers[last-2].starts || string(raw) != "text" ||
		s.containers[last-1].name != "path" || s.containers[last-2].name != "data" {
		return 0
	}
	return digest.PlaceOf([]byte(digest.RipgrepPath))
}
