package summary

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/cutoff"
)

// tokenBytes is how much of a string, number or key is looked at.
const tokenBytes = 4 << 10

// scan hands the tokens of a JSON text to a shape. It reads as [content.Scanner] does; where each line is a value
// of its own, it goes on after lines that are broken.
type scan struct {
	shape *shape
	lines *content.Lines // says where to go on; nil: the text is one value

	json    *content.Scanner
	check   *cutoff.Checker // reads with it too; nil: nobody does
	read    content.Item
	inToken bool
	from    int    // where the token begins in this piece
	held    []byte // what came before this piece
	size    int64  // its whole length
	dead    bool   // nothing is read any more

	offset int64 // of the piece
	at     int64 // where the top-level value being read begins
	lastAt int64 // where the last complete one begins

	newlines int64
	counted  int   // bytes of this piece whose newlines are in newlines
	start    int64 // newlines before the top-level value being read
	values   int64 // complete top-level ones
	broken   int64 // lines that are no JSON
	first    int64 // the first of them, from 1
}

// newScan reads for shape, and where a text is one value for check.
func newScan(shape *shape, check *cutoff.Checker) scan {
	if check == nil {
		l := &content.Lines{}
		return scan{shape: shape, lines: l, json: &l.Scanner}
	}
	return scan{shape: shape, json: check.Scanner(), check: check}
}

func (s *scan) next(p []byte) (int, content.Event) {
	if s.check != nil {
		return s.check.Scan(p)
	}
	return s.json.Scan(p)
}

func (s *scan) write(p []byte) {
	s.counted = 0
	for at := 0; at < len(p) && !s.dead; {
		if s.lines == nil {
			at = s.scanned(p, at, len(p))
			continue
		}
		from, to, cut := s.lines.Line(p[at:], s.values)
		from, to = at+from, at+to
		if cut {
			s.fail(p, from)
		}
		at = s.scanned(p, from, to)
		s.lines.Scanned(p[:at])
	}
	if s.inToken {
		s.hold(p[s.from:])
		s.from = 0
	}
	s.shape.carry(p)
	if s.check != nil {
		s.check.Scanned(p)
	}
	s.count(p, len(p))
	s.offset += int64(len(p))
}

// scanned reads p from at up to end, or to where it is broken, and says how far that was.
func (s *scan) scanned(p []byte, at, end int) int {
	for at < end {
		if n := s.item(p[at:end], at); n > 0 {
			at += n
			continue
		}
		n, e := s.next(p[at:end])
		at += n
		if e != content.More {
			s.take(e, p, at)
		} else if s.json.Err() != nil {
			s.fail(p, at)
			break
		}
	}
	return at
}

// item takes what stands at byte at, where it is one item; else it says 0.
func (s *scan) item(p []byte, at int) (n int) {
	it := &s.read
	if s.check != nil {
		n = s.check.Item(p, it)
	} else {
		n = s.json.Item(p, it)
	}
	if n == 0 {
		return 0
	}
	if it.HasKey {
		s.shape.key(p[it.KeyFrom:it.KeyTo])
	}
	raw := p[it.From:it.To]
	switch size := len(raw); it.Event {
	case content.StringEnd:
		s.shape.text(raw[:min(size, tokenBytes)], int64(size))
	case content.NumberEnd:
		s.shape.figure(raw[:min(size, tokenBytes)])
	case content.LiteralEnd:
		s.shape.word(raw[0])
	default:
		s.shape.open(it.Event == content.ObjectStart, at+it.From)
	}
	return n
}

// close ends the text. A number or literal that ends with it is not complete, nor is what it stands in.
func (s *scan) close() {
	if !s.dead && s.json.Inside() != content.BetweenValues {
		s.shape.abandon()
	}
}

// take hands on the event that piece p has led to by byte at.
func (s *scan) take(e content.Event, p []byte, at int) {
	if e.Starts() && s.top(e) {
		s.count(p, at)
		s.start = s.newlines
		s.at = s.offset + int64(at) - 1
	}
	switch e {
	case content.ObjectStart, content.ArrayStart:
		s.shape.open(e == content.ObjectStart, at-1)
	case content.ObjectEnd, content.ArrayEnd:
		s.shape.shut(p, at)
	case content.KeyStart, content.StringStart:
		s.inToken, s.from, s.held, s.size = true, at, s.held[:0], 0
	case content.NumberStart, content.LiteralStart:
		s.inToken, s.from, s.held, s.size = true, at-1, s.held[:0], 0
	case content.KeyEnd:
		s.shape.key(s.token(p, at-1))
	case content.StringEnd:
		raw := s.token(p, at-1)
		s.shape.text(raw, s.size)
	case content.NumberEnd:
		s.shape.figure(s.token(p, at))
	case content.LiteralEnd:
		s.shape.word(s.token(p, at)[0])
	}
	if e.Ends() && s.json.Depth() == 0 {
		s.values++
		s.lastAt = s.at
	}
}

func (s *scan) top(e content.Event) bool {
	if e == content.ObjectStart || e == content.ArrayStart {
		return s.json.Depth() == 1
	}
	return s.json.Depth() == 0
}

// token is what was read since the token began, tokenBytes at most.
func (s *scan) token(p []byte, end int) []byte {
	s.inToken = false
	raw := p[s.from:end]
	if s.size > 0 {
		s.hold(raw)
		return s.held
	}
	s.size = int64(len(raw))
	return raw[:min(len(raw), tokenBytes)]
}

func (s *scan) hold(p []byte) {
	s.size += int64(len(p))
	if room := tokenBytes - len(s.held); room > 0 {
		s.held = append(s.held, p[:min(room, len(p))]...)
	}
}

// count counts the newlines of p up to byte at.
func (s *scan) count(p []byte, at int) {
	if at > s.counted {
		s.newlines += int64(bytes.Count(p[s.counted:at], []byte{'\n'}))
		s.counted = at
	}
}

// fail is called at the byte that may not stand there. Where lines are values, only the line is lost; otherwise
// nothing tells where the next value begins.
func (s *scan) fail(p []byte, at int) {
	s.shape.abandon()
	s.count(p, at)
	s.inToken = false
	if s.json.Depth() == 0 {
		s.start = s.newlines
	}
	inLine := s.json.Err() != nil // else the next value begins right here
	if s.lines == nil || !s.lines.Lost() {
		s.dead = true
		return
	}
	if s.broken == 0 {
		s.first = s.start + 1
	}
	s.broken += s.newlines - s.start
	if inLine {
		s.broken++
	}
}
