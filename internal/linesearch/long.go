package linesearch

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
)

// longLineReader reads the rest of a long line chunk by chunk. buf[:ready] is text of the line. The bytes after it
// may be an incomplete rune, a \r that may belong to the line end, or the next lines.
type longLineReader struct {
	s     *lineScan
	buf   []byte
	lo    int64 // offset in the line of buf[0]
	old   int   // index in buf of the new chunk
	ready int
	fill  int
	after int // index in buf of the next line, once done
	done  bool
	err   error // a read error, for callers of ReadRune
}

// newLongLineReader returns a reader that continues after the head of a line, which fills s.buf. The last bytes of
// the head may be undecided.
func newLongLineReader(s *lineScan) *longLineReader {
	past := s.m.sizes.history
	t := &longLineReader{s: s, buf: make([]byte, past+s.m.sizes.block)}
	t.lo = int64(s.fill - past)
	t.fill = copy(t.buf, s.buf[s.fill-past:s.fill])
	t.ready = t.fill - t.undecided()
	t.old = t.ready
	return t
}

// undecided returns the number of bytes at the end of the bytes read that may not be text of the line: an incomplete
// rune or a \r.
func (t *longLineReader) undecided() int {
	b := t.buf[:t.fill]
	if !t.s.m.cr && b[t.fill-1] == '\r' {
		return 1
	}
	return len(b[1:]) - runes.Complete(b[1:])
}

// readMore reads the next chunk of the line to buf[old:ready]. It returns false at the end of the line.
func (t *longLineReader) readMore() (bool, error) {
	if t.done {
		t.old = t.ready
		return false, nil
	}
	from := t.ready - min(t.ready, t.s.m.sizes.history)
	t.fill = copy(t.buf, t.buf[from:t.fill])
	t.lo += int64(from)
	t.ready -= from
	t.old = t.ready
	seen := t.fill
	if !t.s.eof {
		n, err := t.s.readSome(t.buf[t.fill:])
		t.fill += n
		if err != nil {
			return false, err
		}
	}
	t.s.progress(t.s.base + t.lo + int64(t.fill))
	if i := bytes.IndexByte(t.buf[seen:t.fill], '\n'); i >= 0 {
		t.done = true
		t.after = seen + i + 1
		t.ready = t.old + len(t.s.m.text(t.buf[t.old:t.after]))
	} else if t.s.eof {
		t.done = true
		t.after = t.fill
		t.ready = t.fill
	} else {
		t.ready = t.fill - t.undecided()
	}
	return t.ready > t.old || !t.done, nil
}

func (t *longLineReader) readToEnd() error {
	for {
		if ok, err := t.readMore(); err != nil || !ok {
			return err
		}
	}
}

// size returns the length of the line up to the bytes read so far.
func (t *longLineReader) size() int64 { return t.lo + int64(t.ready) }

// longLineRunes reads the runes of the line from its start.
type longLineRunes struct {
	t     *longLineReader
	chunk []byte // initially the head of the line, then chunks of the rest, without the runes read
	read  int    // number of runes read
}

func (r *longLineRunes) ReadRune() (rune, int, error) {
	for len(r.chunk) == 0 {
		ok, err := r.t.readMore()
		if err != nil {
			r.t.err = err
			return 0, 0, err
		}
		if !ok {
			return 0, 0, io.EOF
		}
		r.chunk = r.t.buf[r.t.old:r.t.ready]
	}
	if r.read++; r.read%ctxCheckBytes == 0 {
		if err := r.t.s.ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
	c, n := decodeRune(r.chunk, false)
	r.chunk = r.chunk[n:]
	return c, n, nil
}

// scanLongLine searches a line longer than sizes.held, and leaves the buffer at the next line.
//
// The whole line is searched. If the line holds no needle, that takes no longer than reading. Otherwise the regexp
// reads the line rune by rune, and the context is checked regularly.
func (s *lineScan) scanLongLine() error {
	head := s.buf[:s.fill]
	t := newLongLineReader(s)
	head = head[:t.size()]
	o := s.t.o
	l := Line{Number: s.line, End: s.line, Offset: s.base}
	l.Text, l.At = Window(head, 0, o.Window)

	hit, at, err := s.searchLongLine(head, t)
	if err != nil {
		return err
	}
	if hit && !o.Invert && !s.t.quiet {
		l.Column = at + 1
		if l.Text, l.At, err = s.windowAround(head, t, at); err != nil {
			return err
		}
	}
	if err := t.readToEnd(); err != nil {
		return err
	}
	l.Size = t.size()
	if hit != o.Invert {
		if !s.t.quiet {
			if err := s.before(nil, 0, l.Number); err != nil {
				return err
			}
		}
		err = s.t.match(l)
	} else if s.t.after > 0 {
		s.t.after--
		err = s.t.emit(l)
	}
	if err != nil {
		return err
	}
	if o.Before > 0 && !s.t.quiet {
		l.Match, l.Column = false, 0
		first, _ := Window(head, 0, o.Window)
		l.Text, l.At = bytes.Clone(first), 0
		s.tail = appendLast(s.tail, l, o.Before)
	}
	s.line++
	s.base += t.lo + int64(t.after)
	s.fill = copy(s.buf, t.buf[t.after:t.fill])
	return nil
}

// searchLongLine reports whether the line matches, and the position of the match in the line.
func (s *lineScan) searchLongLine(head []byte, t *longLineReader) (hit bool, at int64, err error) {
	if len(s.f.literals) > 0 && (s.m.need.Suffice || s.again != nil) {
		at, err = s.findLiteral(head, t)
		if err != nil || at < 0 || s.m.need.Suffice {
			return at >= 0, at, err
		}
		if err := t.readToEnd(); err != nil {
			return false, 0, err
		}
		line := &readerAtRunes{ctx: s.ctx, src: s.again, at: s.base, end: s.base + t.size()}
		loc := s.m.re.FindReaderIndex(line)
		if line.err != nil {
			return false, 0, line.err
		}
		if loc == nil {
			return false, 0, s.ctx.Err()
		}
		return true, int64(loc[0]), s.ctx.Err()
	}
	loc := s.m.re.FindReaderIndex(&longLineRunes{t: t, chunk: head})
	if t.err != nil {
		return false, 0, t.err
	}
	if err := s.ctx.Err(); err != nil || loc == nil {
		return false, 0, err
	}
	return true, int64(loc[0]), nil
}

// findLiteral returns the position of the line's first needle, or -1.
func (s *lineScan) findLiteral(head []byte, t *longLineReader) (int64, error) {
	s.f.literals.Reset()
	if at, _ := s.f.literals.Find(head, 0); at < len(head) {
		return int64(at), nil
	}
	for {
		ok, err := t.readMore()
		if err != nil || !ok {
			return -1, err
		}
		from := max(0, t.old-s.f.literals.Longest()+1)
		s.f.literals.Reset()
		if at, _ := s.f.literals.Find(t.buf[:t.ready], from); at < t.ready {
			return t.lo + int64(at), nil
		}
		t.old = t.ready
	}
}

// windowAround returns a window around position at of the line, and its position in the line. It rereads the text if
// that is possible, and otherwise uses the bytes still in memory. If these don't include the position, the window is
// at the start of the line.
func (s *lineScan) windowAround(head []byte, t *longLineReader, at int64) ([]byte, int64, error) {
	size := s.t.o.Window
	if s.again != nil {
		return s.rereadWindow(at, size)
	}
	size = min(size, s.m.sizes.history/2)
	if at+int64(size) <= int64(len(head)) {
		w, from := Window(head, int(at), size)
		return w, from, nil
	}
	if t.lo+int64(t.ready)-at < int64(size) && !t.done {
		if _, err := t.readMore(); err != nil {
			return nil, 0, err
		}
	}
	if at < t.lo {
		w, from := Window(head, int(min(at, int64(len(head)))), size)
		return w, from, nil
	}
	w, from := Window(t.buf[:t.ready], int(at-t.lo), size)
	return bytes.Clone(w), t.lo + from, nil
}

// rereadWindow is windowAround by reading the text again.
func (s *lineScan) rereadWindow(at int64, size int) ([]byte, int64, error) {
	from := max(0, at-int64(size))
	b := make([]byte, 2*size)
	n, err := s.again.ReadAt(b, s.base+from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	b = b[:n]
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = s.m.text(b[:i+1])
	}
	w, cut := Window(b, int(at-from), size)
	return w, from + cut, nil
}
