package jsontrunc

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// trackedLevels is the number of outermost levels that remember their last element. Deeper levels matter only if
	// none of these has a complete element.
	trackedLevels = 16
	// errorTail is the maximum number of bytes after a syntax error that belong to Report.Piece.
	errorTail = 80

	bom = "\xef\xbb\xbf"
)

// Checker checks the text written to it. A number or literal at the very end of the text is not complete, even at the
// top level: 12 may be the beginning of 123. A byte order mark is skipped. A Checker takes under 300 KiB, plus at
// most 1 KiB for each open object. Write never fails. A Checker is not safe for concurrent use.
type Checker struct {
	t       content.Tracker
	bomSize int64  // number of bytes of a byte order mark that were skipped
	start   []byte // the first bytes, until there are as many as a byte order mark has
	begun   bool   // there were
	base    int64  // offset of the current chunk in the text
	room    int    // after a syntax error: remaining bytes of errorTail
	levels  [trackedLevels]level
	item    content.Item // scratch for Write
	strict  *strict      // nil: not a whole check
}

// level is a sequence of elements: level 0 holds the top-level values, level n the elements of the container open at
// depth n-1.
//
// While a chunk of the text is scanned, only offsets are recorded. The bytes are copied at the end of the chunk, so
// that of a thousand elements in a chunk only the last one is copied.
type level struct {
	elements int64 // number of complete elements
	key      content.Key
	rest     excerpt // the text after the last complete element, or after the start of the container
	last     excerpt // the last complete element
	open     excerpt // the element being read

	reading      bool  // an element is being read
	startInChunk bool  // the element being read started in this chunk
	endInChunk   bool  // the last element ended in this chunk
	restInChunk  bool  // rest begins in this chunk
	start        int64 // offset of the element being read
	lastFrom     int64 // offset of the part of the last element that is in this chunk
	lastEnd      int64
	restFrom     int64
}

// NewChecker returns a Checker for one text.
func NewChecker() *Checker { return &Checker{} }

// Write checks the next bytes of the text.
func (c *Checker) Write(p []byte) (int, error) {
	size := len(p)
	if !c.begun {
		if c.start = append(c.start, p...); len(c.start) < len(bom) {
			return size, nil
		}
		p = c.begin()
	}
	if c.strict != nil {
		p = p[:c.strict.readable(p, c.base)]
		c.writeStrict(p)
		c.Scanned(p)
		return size, nil
	}
	for rest := p; len(rest) > 0 && c.t.Err() == nil; {
		n := c.Item(rest, &c.item)
		if n == 0 {
			n, _ = c.Scan(rest)
		}
		rest = rest[n:]
	}
	c.Scanned(p)
	return size, nil
}

// Scan is [content.Scanner.Scan], for callers that also need the events of the text: they read it once. Instead of
// Write, call Scan up to the end of the chunk or to an error, and then Scanned. Write must be used for a byte order
// mark.
func (c *Checker) Scan(p []byte) (int, content.Event) {
	n, e := c.t.Scan(p)
	switch {
	case e.Starts():
		c.startElement(e)
	case e.Ends():
		c.endElement()
	}
	return n, e
}

// Item is [content.Scanner.Item]; it can be mixed with Scan.
func (c *Checker) Item(p []byte, it *content.Item) int {
	n := c.t.Item(p, it)
	switch at := c.t.Depth(); {
	case n == 0:
	case it.Event.Opens():
		c.startElement(it.Event)
	case at < trackedLevels:
		l := &c.levels[at]
		l.start, l.startInChunk = c.t.Offset()+c.bomSize-int64(n-it.From), true
		if it.Event == content.StringEnd {
			l.start-- // include the opening quote
		}
		c.endElement()
	}
	return n
}

// Scanned must be called after each chunk p that was read by Scan.
func (c *Checker) Scanned(p []byte) {
	switch right := c.t.Offset() + c.bomSize - c.base; {
	case c.t.Err() == nil:
		c.endChunk(p)
	case right < 0:
		c.addErrorTail(p)
	default:
		c.room = errorTail
		c.endChunk(p[:right])
		c.addErrorTail(p[right:])
	}
	c.base += int64(len(p))
}

// Scanner returns the scanner that Scan uses.
func (c *Checker) Scanner() *content.Scanner { return &c.t.Scanner }

// begin returns the first bytes of the text without a byte order mark.
func (c *Checker) begin() []byte {
	p := bytes.TrimPrefix(c.start, []byte(bom))
	c.bomSize = int64(len(c.start) - len(p))
	c.start, c.begun, c.base = nil, true, c.bomSize
	c.levels[0].rest.begin(c.bomSize)
	return p
}

// addErrorTail appends the bytes after a syntax error, at most errorTail of them, to the rest field of each level.
func (c *Checker) addErrorTail(p []byte) {
	p = p[:min(len(p), c.room)]
	c.room -= len(p)
	for l := 0; l <= min(c.t.Depth(), trackedLevels-1); l++ {
		c.levels[l].rest.add(p)
	}
}

func (c *Checker) startElement(e content.Event) {
	off := c.t.Offset() + c.bomSize
	if child := c.t.Depth(); e.Opens() && child < trackedLevels {
		l := &c.levels[child]
		l.elements, l.reading, l.endInChunk = 0, false, false
		l.restInChunk, l.restFrom = true, off
		l.last.begin(0)
	}
	if at := c.t.Around(e); at < trackedLevels {
		l := &c.levels[at]
		l.start, l.startInChunk, l.reading = off-1, true, true
	}
}

// endElement records the end of a value.
func (c *Checker) endElement() {
	at := c.t.Depth()
	if at >= trackedLevels {
		return
	}
	l := &c.levels[at]
	if l.startInChunk {
		l.last.begin(l.start)
		l.lastFrom = l.start
	} else {
		l.last, l.open = l.open, l.last
		l.lastFrom = c.base
	}
	off := c.t.Offset() + c.bomSize
	l.lastEnd, l.endInChunk = off, true
	l.restFrom, l.restInChunk = off, true
	l.reading = false
	l.elements++
	if at > 0 && c.t.IsObject(at-1) {
		c.t.CopyKey(at-1, &l.key)
	}
}

// endChunk copies the bytes that the levels recorded from the chunk.
func (c *Checker) endChunk(p []byte) {
	base := c.base
	for i := range c.levels {
		l := &c.levels[i]
		if l.endInChunk {
			l.last.add(p[l.lastFrom-base : l.lastEnd-base])
			l.endInChunk = false
		}
		if i > c.t.Depth() {
			continue
		}
		if l.restInChunk {
			l.rest.begin(l.restFrom)
			l.rest.add(p[l.restFrom-base:])
			l.restInChunk = false
		} else {
			l.rest.add(p)
		}
		switch {
		case l.reading && l.startInChunk:
			l.open.begin(l.start)
			l.open.add(p[l.start-base:])
			l.startInChunk = false
		case l.reading:
			l.open.add(p)
		}
	}
}

// Close returns the report. The Checker must not be used afterwards.
func (c *Checker) Close() Report {
	if len(c.start) > 0 { // the text is shorter than a mark
		_, _ = c.Write(c.begin())
	}
	r := Report{Values: c.t.Values(), Offset: c.t.Offset() + c.bomSize}
	var syntax *content.SyntaxError
	inside := c.t.Inside()
	switch {
	case errors.As(c.t.Err(), &syntax):
		r.State, r.Reason, r.Inside = Broken, syntax.Reason, inside
	case inside != content.BetweenValues:
		r.State, r.Inside = Cut, inside
	case r.Values == 0:
		r.State = Empty
		if c.strict != nil {
			r.Line = c.strict.lines + 1
		}
		return r
	default:
		r.State = Whole
	}
	c.pointer(&r)
	c.lastElement(&r)
	if c.strict != nil {
		c.closeStrict(&r)
	}
	return r
}

// pointer sets the JSON Pointer of the innermost open value.
func (c *Checker) pointer(r *Report) {
	depth := c.t.Depth()
	switch r.Inside {
	case "string", "number", "literal":
	default:
		if depth == 0 {
			return
		}
		depth--
	}
	if r.Values > 0 {
		r.Pointer = "/" + strconv.FormatInt(r.Values, 10)
	}
	r.Pointer += string(c.t.Pointer(depth))
}

func (c *Checker) lastElement(r *Report) {
	at := c.lastLevel(r)
	if at < 0 {
		if r.State != Whole {
			r.Piece = c.levels[0].rest.text()
		}
		return
	}
	l := &c.levels[at]
	r.Elements = l.elements
	r.LastStart, r.LastEnd, r.Last = l.last.start, l.last.end, l.last.text()
	r.PieceStart = r.LastEnd
	if r.State != Whole {
		r.Piece = l.rest.text()
	}
	switch {
	case at == 0:
		r.LastPointer = "/" + strconv.FormatInt(l.elements-1, 10)
	case c.t.IsObject(at - 1):
		r.LastPointer = string(l.key.Append(c.t.Pointer(at - 1)))
	default:
		r.LastPointer = string(c.t.Pointer(at-1)) + "/" + strconv.FormatInt(l.elements-1, 10)
	}
}

// lastLevel returns the level whose last element is reported; −1 if no level has a complete element.
func (c *Checker) lastLevel(r *Report) int {
	switch {
	case r.State == Whole && r.Values == 1:
		if c.levels[1].elements > 0 {
			return 1
		}
		return -1
	case r.Values > 0:
		return 0
	}
	object := -1
	for at := 1; at <= min(c.t.Depth(), trackedLevels-1); at++ {
		switch {
		case c.levels[at].elements == 0:
		case !c.t.IsObject(at - 1):
			return at
		case object < 0:
			object = at
		}
	}
	return object
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
			at := len(p) - len(rest) + n
			switch {
			case c.t.Around(e) > 0:
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

// follows reports whether the text at an error begins no further value, although it may begin like one: outside of
// containers, as "note" begins like null, or directly after an opening bracket.
func (c *Checker) follows() bool {
	last := c.strict.last
	return c.t.Depth() == 0 || c.t.Depth() == 1 && (last == '[' || last == '{')
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
	case r.State == Broken && !s.more && r.Inside != content.BetweenValues && r.Inside != "array" && r.Inside != "object":
		r.State, r.Reason = Cut, "" // the line end is the file's, not the value's
		r.Piece = strings.TrimRight(r.Piece, "\r\n")
	case r.State == Broken && r.Values > 0 && c.follows():
		r.State, r.Inside, r.Pointer = Trailing, content.BetweenValues, ""
		r.Reason = "text follows the end of the document: " + r.Reason
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
