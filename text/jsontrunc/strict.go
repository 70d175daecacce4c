package jsontrunc

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// fewNames is the number of names of an object up to which its set is used again.
	fewNames = 64
	// maxNames is the number of names of all open objects that are remembered: 16 MiB.
	maxNames = 1 << 20
)

// strict is the state of [Check] that a [Checker] does not need: the line number, names that occur again in their
// object, and values that follow another one on its line.
type strict struct {
	seed    maphash.Seed
	objects []map[uint64]struct{} // hashes of the names, by depth
	names   int                   // in objects
	key     content.Key
	buf     []byte
	double  int64

	lines    int64 // newlines up to the end of the text, or to the error
	between  bool  // no top-level value is open
	newline  bool  // a newline followed the last one
	trailing int64 // offset of the end of a value that another one follows on its line; −1: none
	ended    int64 // offset of the end of the last top-level value
	last     byte  // the last byte that is not white space
	more     bool  // the text after an error is not only line ends

	invalid int64  // offset of the first byte that is not UTF-8; −1: none
	half    []byte // the beginning of a character at the end of what was read
}

// readable returns the length of the UTF-8 at the start of p. base is the offset of p in the text.
func (s *strict) readable(p []byte, base int64) int {
	if s.invalid >= 0 {
		return 0
	}
	from := 0
	if n := len(s.half); n > 0 {
		b := append(s.half, p[:min(len(p), utf8.UTFMax-n)]...)
		if s.half = b; !utf8.FullRune(b) {
			return len(p)
		}
		r, size := utf8.DecodeRune(b)
		if s.half = nil; r == utf8.RuneError && size == 1 {
			s.invalid = base - int64(n)
			return 0
		}
		from = size - n
	}
	end := from + runes.Complete(p[from:])
	if n := runes.Invalid(p[from:end]); n >= 0 {
		s.invalid = base + int64(from+n)
		return from + n
	}
	s.half = bytes.Clone(p[end:])
	return len(p)
}

// open begins an object at a depth, counted from 0.
func (s *strict) open(depth int) {
	for len(s.objects) <= depth {
		s.objects = append(s.objects, map[uint64]struct{}{})
	}
	names := s.objects[depth]
	if s.names -= len(names); len(names) > fewNames { // to clear a map takes as long as it was large once
		s.objects[depth] = map[uint64]struct{}{}
	} else {
		clear(names)
	}
}

// name adds a name, as it is written, to the object at a depth.
func (s *strict) name(depth int, raw []byte) {
	if s.names >= maxNames {
		return
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.buf = content.AppendUnquoted(s.buf[:0], raw)
		raw = s.buf
	}
	sum := maphash.Bytes(s.seed, raw)
	if _, known := s.objects[depth][sum]; known {
		s.double++
		return
	}
	s.objects[depth][sum] = struct{}{}
	s.names++
}

// scan processes an event: a new object has no names yet, and the name of a key that has ended is added.
func (s *strict) scan(c *Checker, e content.Event) {
	switch depth := c.t.Depth(); e {
	case content.ObjectStart:
		s.open(depth - 1)
	case content.KeyEnd:
		c.t.CopyKey(depth-1, &s.key)
		s.name(depth-1, s.key.Raw())
	}
}

// item is scan for an item of p.
func (s *strict) item(c *Checker, p []byte, it *content.Item) {
	if it.Event == content.ObjectStart {
		s.open(c.t.Depth() - 1)
	}
	if it.HasKey {
		s.name(c.t.Around(it.Event)-1, p[it.KeyFrom:it.KeyTo])
	}
}
