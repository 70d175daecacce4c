package cutoff

import (
	"errors"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

const (
	// tracked is how many of the outermost levels remember their last element. Deeper ones matter only where none
	// of these has a complete element.
	tracked = 16
	// after is how much after a place that is broken still belongs to the piece.
	after = 80

	bom = "\xef\xbb\xbf"
)

// Checker finds out while the text is written to it. A number or literal at
// the very end of the text is not complete, at the top neither: nothing tells 12 from the
// beginning of 123. A byte order mark is passed over. Bounded memory: under 300 KiB, and at most 1 KiB for each open
// object; Write never fails. Not safe for concurrent use.
type Checker struct {
	t      content.Tracker
	mark   int64 // bytes of the byte order mark
	begun  bool
	base   int64 // where the window begins that is being read
	room   int   // after the broken place: what of the bytes is still wanted
	levels [tracked]level
	item   content.Item // of Write
}

// level is a sequence of elements: level 0 is that of the top-level values, level n what
// the container holds that is open at depth n-1.
//
// While a window of the text is read only places are noted; what lies there is taken when it ends, so
// that of a thousand elements in it one is copied.
type level struct {
	elements int64 // complete ones
	key      content.Key
	piece    excerpt // from the end of the last element
	last     excerpt // the last element
	open     excerpt // the element being read

	reading   bool // an element is being read
	fresh     bool // it began in this window
	ended     bool // last ended in this window
	cut       bool // piece begins in this window
	start     int64
	lastFrom  int64
	lastEnd   int64
	pieceFrom int64
}

// NewChecker starts a check.
func NewChecker() *Checker { return &Checker{} }

// Write goes on with the text.
func (c *Checker) Write(p []byte) (int, error) {
	size := len(p)
	if c.t.Offset() == 0 && c.t.Err() == nil {
		p = c.skipMark(p)
		c.base = c.mark
		c.levels[0].piece.begin(c.mark)
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

// Scan is [content.Scanner.Scan] for who needs the events of the text too, so that it is read once: instead of Write of a
// piece, Scan to its end, or to an error, and then Scanned. A byte order mark is written.
func (c *Checker) Scan(p []byte) (int, content.Event) {
	n, e := c.t.Scan(p)
	switch {
	case e.Starts():
		c.starts(e)
	case e.Ends():
		c.ends()
	}
	return n, e
}

// Item is [content.Scanner.Item], beside Scan.
func (c *Checker) Item(p []byte, it *content.Item) int {
	n := c.t.Item(p, it)
	switch at := c.t.Depth(); {
	case n == 0:
	case it.Event == content.ObjectStart || it.Event == content.ArrayStart:
		c.starts(it.Event)
	case at < tracked:
		l := &c.levels[at]
		l.start, l.fresh = c.t.Offset()+c.mark-int64(n-it.From), true
		if it.Event == content.StringEnd {
			l.start-- // its quote
		}
		c.ends()
	}
	return n
}

// Scanned ends a piece.
func (c *Checker) Scanned(p []byte) {
	switch right := c.t.Offset() + c.mark - c.base; {
	case c.t.Err() == nil:
		c.settle(p)
	case right < 0:
		c.trail(p)
	default:
		c.room = after
		c.settle(p[:right])
		c.trail(p[right:])
	}
	c.base += int64(len(p))
}

// Scanner is the one that Scan reads with.
func (c *Checker) Scanner() *content.Scanner { return &c.t.Scanner }

// skipMark passes over a byte order mark, which may come in pieces. What only began as one is text after all.
func (c *Checker) skipMark(p []byte) []byte {
	for len(p) > 0 && c.mark < int64(len(bom)) && !c.begun && p[0] == bom[c.mark] {
		p = p[1:]
		c.mark++
	}
	if len(p) == 0 || c.begun {
		return p
	}
	c.begun = true
	if c.mark < int64(len(bom)) {
		p = append([]byte(bom[:c.mark]), p...)
		c.mark = 0
	}
	return p
}

// trail adds to the piece what stands after the broken place, as far as it helps to see.
func (c *Checker) trail(p []byte) {
	p = p[:min(len(p), c.room)]
	c.room -= len(p)
	for l := 0; l <= min(c.t.Depth(), tracked-1); l++ {
		c.levels[l].piece.add(p)
	}
}

func (c *Checker) starts(e content.Event) {
	at, container := c.t.Depth(), e == content.ObjectStart || e == content.ArrayStart
	off := c.t.Offset() + c.mark
	if container {
		at--
		if child := at + 1; child < tracked {
			l := &c.levels[child]
			l.elements, l.reading, l.ended = 0, false, false
			l.cut, l.pieceFrom = true, off
			l.last.begin(0)
		}
	}
	if at < tracked {
		l := &c.levels[at]
		l.start, l.fresh, l.reading = off-1, true, true
	}
}

// ends takes the end of a value.
func (c *Checker) ends() {
	at := c.t.Depth()
	if at >= tracked {
		return
	}
	l := &c.levels[at]
	if l.fresh {
		l.last.begin(l.start)
		l.lastFrom = l.start
	} else {
		l.last, l.open = l.open, l.last
		l.lastFrom = c.base
	}
	off := c.t.Offset() + c.mark
	l.lastEnd, l.ended = off, true
	l.pieceFrom, l.cut = off, true
	l.reading = false
	l.elements++
	if at > 0 && c.t.IsObject(at-1) {
		c.t.CopyKey(at-1, &l.key)
	}
}

// settle takes from the window what the levels want of it.
func (c *Checker) settle(p []byte) {
	base := c.base
	for i := range c.levels {
		l := &c.levels[i]
		if l.ended {
			l.last.add(p[l.lastFrom-base : l.lastEnd-base])
			l.ended = false
		}
		if i > c.t.Depth() {
			continue
		}
		if l.cut {
			l.piece.begin(l.pieceFrom)
			l.piece.add(p[l.pieceFrom-base:])
			l.cut = false
		} else {
			l.piece.add(p)
		}
		switch {
		case l.reading && l.fresh:
			l.open.begin(l.start)
			l.open.add(p[l.start-base:])
			l.fresh = false
		case l.reading:
			l.open.add(p)
		}
	}
}

// Close says what was found. The Checker is not used afterwards.
func (c *Checker) Close() Report {
	if !c.begun && c.mark > 0 && c.mark < int64(len(bom)) {
		half := []byte(bom[:c.mark])
		c.mark, c.begun = 0, true
		_, _ = c.Write(half)
	}
	r := Report{Values: c.t.Values(), Offset: c.t.Offset() + c.mark}
	var syntax *content.SyntaxError
	inside := c.t.Inside()
	switch {
	case errors.As(c.t.Err(), &syntax):
		r.State, r.Reason, r.Inside = Broken, syntax.Reason, inside
	case inside != content.BetweenValues:
		r.State, r.Inside = Cut, inside
	case r.Values == 0:
		r.State = Empty
		return r
	default:
		r.State = Whole
	}
	c.pointer(&r)
	c.lastElement(&r)
	return r
}

// pointer names the innermost open value.
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
	at := c.level(r)
	if at < 0 {
		if r.State != Whole {
			r.Piece = c.levels[0].piece.text()
		}
		return
	}
	l := &c.levels[at]
	r.Elements = l.elements
	r.LastStart, r.LastEnd, r.Last = l.last.start, l.last.end, l.last.text()
	r.PieceStart = r.LastEnd
	if r.State != Whole {
		r.Piece = l.piece.text()
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

// level chooses the sequence whose last element is told; −1 where none has one.
func (c *Checker) level(r *Report) int {
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
	for at := 1; at <= min(c.t.Depth(), tracked-1); at++ {
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
