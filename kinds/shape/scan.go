package shape

import (
	"bytes"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/jsontrunc"
)

// tokenBytes is the number of bytes examined of each string, number or key.
const tokenBytes = 4 << 10

// scan reads JSON with a [content.Scanner] and passes the tokens to a shape. In NDJSON, scan continues after a broken
// line.
type scan struct {
	shape *shape
	lines *content.Lines // finds the next line after an error; nil if the text is one value

	json    *content.Scanner
	check   *jsontrunc.Checker // shares the scanner json; nil if not used
	read    content.Item
	inToken bool
	from    int    // offset of the token in the current block
	held    []byte // beginning of a token that began in an earlier block
	size    int64  // full length of the token in bytes
	stopped bool   // an error ended the text; the rest is ignored

	offset   int64 // offset of the current block in the text
	newlines int64
	counted  int   // number of bytes of the current block whose newlines are already counted
	start    int64 // number of newlines before the current top-level value
	values   int64 // number of complete top-level values
	broken   int64 // number of lines that are not JSON
	first    int64 // number of the first such line, from 1
}

// newScan returns a scan that fills shape. check checks the single value of JSON; nil for NDJSON.
func newScan(shape *shape, check *jsontrunc.Checker) scan {
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
	s.shape.base = s.offset
	for at := 0; at < len(p) && !s.stopped; {
		if s.lines == nil {
			at = s.scanRange(p, at, len(p))
			continue
		}
		from, to, cut := s.lines.Line(p[at:], s.values)
		from, to = at+from, at+to
		if cut {
			s.fail(p, from)
		}
		at = s.scanRange(p, from, to)
		s.lines.Scanned(p[:at])
	}
	if s.inToken {
		s.appendToken(p[s.from:])
		s.from = 0
	}
	s.shape.endBlock(p)
	if s.check != nil {
		s.check.Scanned(p)
	}
	s.count(p, len(p))
	s.offset += int64(len(p))
}

// scanRange reads p[at:end] up to the first error and returns the offset it reached.
func (s *scan) scanRange(p []byte, at, end int) int {
	for at < end {
		if n := s.item(p[at:end], at); n > 0 {
			at += n
			continue
		}
		n, e := s.next(p[at:end])
		at += n
		if e != content.More {
			s.handle(e, p, at)
		} else if s.json.Err() != nil {
			s.fail(p, at)
			break
		}
	}
	return at
}

// item reads one complete item at the start of p and returns the item's length; 0 if the caller must scan byte by
// byte. at is the offset of p in the block.
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
		s.shape.number(raw[:min(size, tokenBytes)])
	case content.LiteralEnd:
		s.shape.literal(raw[0])
	default:
		s.shape.open(it.Event == content.ObjectStart, at+it.From)
	}
	return n
}

// close ends the text. A number or literal at the very end may be incomplete, so the containers around it count as
// incomplete too.
func (s *scan) close() {
	if !s.stopped && s.json.Inside() != content.BetweenValues {
		s.shape.abandon()
	}
}

// handle passes an event to the shape. at is the offset in block p just after the byte that caused the event.
func (s *scan) handle(e content.Event, p []byte, at int) {
	if e.Starts() && s.json.Around(e) == 0 {
		s.count(p, at)
		s.start = s.newlines
	}
	switch e {
	case content.ObjectStart, content.ArrayStart:
		s.shape.open(e == content.ObjectStart, at-1)
	case content.ObjectEnd, content.ArrayEnd:
		s.shape.close(p, at)
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
		s.shape.number(s.token(p, at))
	case content.LiteralEnd:
		s.shape.literal(s.token(p, at)[0])
	}
	if e.Ends() && s.json.Depth() == 0 {
		s.values++
	}
}

// token returns the current token, which ends at p[end], truncated to tokenBytes.
func (s *scan) token(p []byte, end int) []byte {
	s.inToken = false
	raw := p[s.from:end]
	if s.size > 0 {
		s.appendToken(raw)
		return s.held
	}
	s.size = int64(len(raw))
	return raw[:min(len(raw), tokenBytes)]
}

func (s *scan) appendToken(p []byte) {
	s.size += int64(len(p))
	if room := tokenBytes - len(s.held); room > 0 {
		s.held = append(s.held, p[:min(room, len(p))]...)
	}
}

// count adds the number of newlines in p[:at] that were not counted before.
func (s *scan) count(p []byte, at int) {
	if at > s.counted {
		s.newlines += int64(bytes.Count(p[s.counted:at], []byte{'\n'}))
		s.counted = at
	}
}

// fail handles a syntax error at p[at]. If every line is a value, only the current line is lost; otherwise the rest
// of the text is ignored, because the start of the next value is unknown.
func (s *scan) fail(p []byte, at int) {
	s.shape.abandon()
	s.count(p, at)
	s.inToken = false
	if s.json.Depth() == 0 {
		s.start = s.newlines
	}
	inLine := s.json.Err() != nil // otherwise the next value begins here
	if s.lines == nil || !s.lines.Lost() {
		s.stopped = true
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
