package jsontrunc

import (
	"bytes"
	"hash/maphash"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

const (
	// fewNames is the number of names of an object up to which they are compared one by one.
	fewNames = 12
	// maxNames is the number of names of all open objects that are remembered: 16 MiB.
	maxNames = 1 << 20
)

// strict is what only a whole check reads: the number of the line, names that occur again, and values that follow
// another on its line.
type strict struct {
	seed    maphash.Seed
	objects []nameSet // by depth
	names   int       // in objects
	key     content.Key
	buf     []byte
	double  int64

	lines    int64 // newlines up to the end of the text, or to the error
	between  bool  // no top-level value is open
	newline  bool  // a newline followed the last one
	trailing int64 // offset of the end of a value that another one follows on its line; −1: none
	ended    int64 // offset of the end of the last top-level value
	last     byte  // the last byte that is not white space
	more     bool  // something else than line ends follows an error

	invalid int64  // offset of the first byte that is not UTF-8; −1: none
	half    []byte // the beginning of a character at the end of what was read
}

// readable returns how much of p, which begins at an offset of the text, is UTF-8.
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

// nameSet holds the hashes of the names of one object.
type nameSet struct {
	few  []uint64
	many map[uint64]struct{}
}

func (s *nameSet) reset() { s.few, s.many = s.few[:0], nil }

func (s *nameSet) size() int { return len(s.few) + len(s.many) }

// add reports whether the set has the name already.
func (s *nameSet) add(sum uint64) bool {
	if s.many != nil {
		_, found := s.many[sum]
		s.many[sum] = struct{}{}
		return found
	}
	for _, have := range s.few {
		if have == sum {
			return true
		}
	}
	if s.few = append(s.few, sum); len(s.few) > fewNames {
		s.many = make(map[uint64]struct{}, 4*fewNames)
		for _, have := range s.few {
			s.many[have] = struct{}{}
		}
		s.few = s.few[:0]
	}
	return false
}

// open begins an object at a depth, counted from 0.
func (s *strict) open(depth int) {
	for len(s.objects) <= depth {
		s.objects = append(s.objects, nameSet{})
	}
	s.names -= s.objects[depth].size()
	s.objects[depth].reset()
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
	if s.objects[depth].add(maphash.Bytes(s.seed, raw)) {
		s.double++
	} else {
		s.names++
	}
}

// scan follows an event of the text at chunk[:n], whose end has the given offset in the text.
func (s *strict) scan(c *Checker, e content.Event) {
	switch depth := c.t.Depth(); {
	case e == content.ObjectStart:
		s.open(depth - 1)
	case e == content.KeyEnd:
		c.t.CopyKey(depth-1, &s.key)
		s.name(depth-1, s.key.Raw())
	}
}

// item follows an item.
func (s *strict) item(c *Checker, p []byte, it *content.Item) {
	depth := c.t.Depth()
	if it.Event == content.ObjectStart {
		s.open(depth - 1)
		depth--
	} else if it.Event == content.ArrayStart {
		depth--
	}
	if it.HasKey {
		s.name(depth-1, p[it.KeyFrom:it.KeyTo])
	}
}

// writeStrict is Write for a whole check.
func (c *Checker) writeStrict(p []byte) {
	s := c.strict
	base := c.base
	from := 0 // in p, of what follows the last top-level value
	for rest := p; len(rest) > 0 && c.t.Err() == nil && s.trailing < 0; {
		n := c.Item(rest, &c.item)
		if n > 0 {
			s.item(c, rest, &c.item)
		} else {
			var e content.Event
			n, e = c.Scan(rest)
			s.scan(c, e)
			depth := c.t.Depth()
			if e == content.ObjectStart || e == content.ArrayStart {
				depth--
			}
			at := len(p) - len(rest) + n
			switch {
			case depth > 0:
			case e.Starts():
				if s.between && !s.newline && bytes.IndexByte(p[from:at], '\n') < 0 {
					s.trailing = s.ended
				}
				s.between = false
			case e.Ends():
				s.between, s.newline, s.ended, from = true, false, base+int64(at), at
			}
		}
		rest = rest[n:]
	}
	if s.between && bytes.IndexByte(p[from:], '\n') >= 0 {
		s.newline = true
	}
	read := min(int64(len(p)), c.t.Offset()+c.bomSize-base)
	if c.t.Err() != nil && len(bytes.Trim(p[max(0, read):], "\r\n")) > 0 {
		s.more = true
	}
	if s.trailing >= 0 {
		read = max(0, s.trailing-base)
	}
	if read > 0 {
		s.lines += int64(bytes.Count(p[:read], []byte{'\n'}))
		if t := bytes.TrimRight(p[:read], " \t\r\n"); len(t) > 0 {
			s.last = t[len(t)-1]
		}
	}
}

// closeStrict completes the report of a whole check.
func (c *Checker) closeStrict(r *Report) {
	s := c.strict
	r.Line, r.Duplicates = s.lines+1, s.double
	switch {
	case s.trailing >= 0:
		r.State, r.Offset, r.Reason = Trailing, s.trailing, "text follows a value on its line"
		r.Inside, r.Pointer = content.BetweenValues, ""
	case s.invalid >= 0 && r.State != Broken:
		state := Broken
		if r.State == Whole {
			state = Trailing
		}
		r.State, r.Offset, r.Reason = state, s.invalid, "the text is not UTF-8 from this byte on"
	case r.State == Broken && r.Values > 0 && r.Inside == content.BetweenValues:
		r.State = Trailing
		r.Reason = "text follows the end of the document: " + r.Reason
	case r.State == Broken && !s.more && (r.Inside == "string" || r.Inside == "key"):
		r.State, r.Reason = Cut, "" // the line end is the file's, not the string's
		r.Piece = strings.TrimRight(r.Piece, "\r\n")
	case r.State == Broken && c.t.Depth() >= content.MaxDepth:
		r.State = TooDeep
	case r.State == Cut && c.t.Depth() == 0:
		if _, err := c.t.End(); err == nil {
			r.State, r.Values = Whole, r.Values+1
			if r.Inside == "number" {
				r.State = Ambiguous
				r.Reason = "a number at the end of the text may go on: end it with a newline"
			} else {
				r.Inside = ""
			}
		}
	case r.State == Cut && (r.Inside == "object" || r.Inside == "array"):
		switch s.last {
		case ',':
			r.Inside = "after a comma in " + content.Article(r.Inside)
		case ':':
			r.Inside = "after a colon in " + content.Article(r.Inside)
		}
	}
}
