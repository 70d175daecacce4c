package linesearch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
)

// longLineReader reads the rest of a long line chunk by chunk. The current chunk is buf[start:end]. buf[:start] is the
// text before the chunk, at most sizes.history bytes. buf[end:fill] may hold an incomplete rune, a \r that may belong
// to the line end, or the next lines.
type longLineReader struct {
	s     *lineScan
	buf   []byte
	base  int64 // offset of buf[0] in the line
	start int
	end   int
	fill  int
	next  int   // index in buf of the next line, once done
	done  bool  // the end of the line was read
	err   error // a read error of longLineRunes, which FindReaderIndex does not return
}

// newLongLineReader returns a reader that continues after the head of a line, which fills s.buf. The first chunk is
// empty. The last bytes of the head may be undecided.
func newLongLineReader(s *lineScan) *longLineReader {
	history := s.m.sizes.history
	r := &longLineReader{s: s, buf: make([]byte, history+s.m.sizes.block)}
	r.base = int64(s.fill - history)
	r.fill = copy(r.buf, s.buf[s.fill-history:s.fill])
	r.end = r.fill - r.undecided()
	r.start = r.end
	return r
}

// undecided returns the number of bytes at the end of the bytes read that may not be text of the line: an incomplete
// rune or a \r.
func (r *longLineReader) undecided() int {
	b := r.buf[:r.fill]
	if !r.s.m.cr && b[r.fill-1] == '\r' {
		return 1
	}
	return len(b[1:]) - runes.Complete(b[1:])
}

// readMore reads the next chunk of the line. It returns false at the end of the line.
func (r *longLineReader) readMore() (bool, error) {
	if r.done {
		r.start = r.end
		return false, nil
	}
	from := r.end - min(r.end, r.s.m.sizes.history)
	r.fill = copy(r.buf, r.buf[from:r.fill])
	r.base += int64(from)
	r.end -= from
	r.start = r.end
	searched := r.fill // there is no newline before this index
	if !r.s.eof {
		n, err := r.s.readSome(r.buf[r.fill:])
		r.fill += n
		if err != nil {
			return false, err
		}
	}
	r.s.progress(r.s.base + r.base + int64(r.fill))
	if i := bytes.IndexByte(r.buf[searched:r.fill], '\n'); i >= 0 {
		r.done = true
		r.next = searched + i + 1
		r.end = r.start + len(r.s.m.text(r.buf[r.start:r.next]))
	} else if r.s.eof {
		r.done = true
		r.next = r.fill
		r.end = r.fill
	} else {
		r.end = r.fill - r.undecided()
	}
	return r.end > r.start || !r.done, nil
}

// readToEnd reads the rest of the line.
func (r *longLineReader) readToEnd() error {
	for {
		if ok, err := r.readMore(); err != nil || !ok {
			return err
		}
	}
}

// size returns the length of the line up to the bytes read so far.
func (r *longLineReader) size() int64 { return r.base + int64(r.end) }

// longLineRunes reads the runes of the line from its start.
type longLineRunes struct {
	line  *longLineReader
	chunk []byte // initially the head of the line, then chunks of the rest, without the runes read
	read  int    // number of runes read
}

func (r *longLineRunes) ReadRune() (rune, int, error) {
	for len(r.chunk) == 0 {
		ok, err := r.line.readMore()
		if err != nil {
			r.line.err = err
			return 0, 0, err
		}
		if !ok {
			return 0, 0, io.EOF
		}
		r.chunk = r.line.buf[r.line.start:r.line.end]
	}
	if r.read++; r.read%ctxCheckBytes == 0 {
		if err := r.line.s.ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
	c, n := decodeRune(r.chunk, false)
	r.chunk = r.chunk[n:]
	return c, n, nil
}

// scanLongLine searches all of a line longer than sizes.held, and leaves the buffer at the next line.
//
// If the line holds no needle, the search takes no longer than reading. Otherwise the automaton walks over it, or
// regexp reads the line rune by rune, and the reader checks the context.
func (s *lineScan) scanLongLine() error {
	head := s.buf[:s.fill]
	r := newLongLineReader(s)
	head = head[:r.size()]
	o := s.out.Options
	l := Line{Number: s.line, End: s.line, Offset: s.base}
	l.Text, l.At = Window(head, 0, o.Window)

	match, at, err := s.searchLongLine(head, r)
	if err != nil {
		return err
	}
	if match && !o.Invert && !s.out.quiet {
		l.Column = at + 1
		if l.Text, l.At, err = s.windowAround(head, r, at); err != nil {
			return err
		}
	}
	if err := r.readToEnd(); err != nil {
		return err
	}
	l.Size = r.size()
	if match != o.Invert {
		if !s.out.quiet {
			if err := s.emitBefore(nil, 0, l.Number); err != nil {
				return err
			}
		}
		err = s.out.match(l)
	} else if s.out.contextLeft > 0 {
		s.out.contextLeft--
		err = s.out.emit(l)
	}
	if err != nil {
		return err
	}
	if o.Before > 0 && !s.out.quiet {
		l.Match, l.Column = false, 0
		first, _ := Window(head, 0, o.Window)
		l.Text, l.At = bytes.Clone(first), 0
		s.tail = appendLast(s.tail, l, o.Before)
	}
	s.line++
	s.base += r.base + int64(r.next)
	s.fill = copy(s.buf, r.buf[r.next:r.fill])
	return nil
}

// searchLongLine reports whether the line matches, and the position of the match in the line.
func (s *lineScan) searchLongLine(head []byte, r *longLineReader) (match bool, at int64, err error) {
	if len(s.f.literals) > 0 && (s.m.need.Suffice || s.readerAt != nil) {
		at, err = s.findLiteral(head, r)
		if err != nil || at < 0 || s.m.need.Suffice {
			return at >= 0, at, err
		}
	}
	if s.readerAt != nil {
		return s.searchReread(r)
	}
	loc := s.m.re().FindReaderIndex(&longLineRunes{line: r, chunk: head})
	if r.err != nil {
		return false, 0, r.err
	}
	if err := s.ctx.Err(); err != nil || loc == nil {
		return false, 0, err
	}
	return true, int64(loc[0]), nil
}

// findLiteral returns the position of the line's first needle, or -1.
func (s *lineScan) findLiteral(head []byte, r *longLineReader) (int64, error) {
	if at := s.f.firstNeedle(head, 0); at < len(head) {
		return int64(at), nil
	}
	for {
		ok, err := r.readMore()
		if err != nil || !ok {
			return -1, err
		}
		from := max(0, r.start-s.f.literals.Longest()) // a needle may begin in the chunk before
		if at := s.f.firstNeedle(r.buf[:r.end], from); at < r.end {
			return r.base + int64(at), nil
		}
	}
}

// firstNeedle returns the position of the first needle in b[from:], or len(b). The vectors skip bytes before it. In the
// last bytes of b they may miss one, and of several in a line they return any.
func (f *finder) firstNeedle(b []byte, from int) int {
	if f.searcher != nil {
		at, _, _ := f.searcher.Find(b, from)
		from = max(from, at-f.literals.Longest())
	}
	f.literals.Reset()
	at, _ := f.literals.Find(b, from)
	return at
}

// searchReread searches a line that can be read again: by the automaton block by block, and where that finds a match,
// by regexp for its start.
func (s *lineScan) searchReread(r *longLineReader) (match bool, at int64, err error) {
	if err := r.readToEnd(); err != nil {
		return false, 0, err
	}
	line := func() io.Reader { return io.NewSectionReader(s.readerAt, s.base, r.size()) }
	match, end, ok := false, int64(0), false
	if w := s.f.walker(); w != nil {
		match, end, ok, err = w.walkLong(s.ctx, line())
	}
	from := int64(0)
	switch {
	case err != nil:
		return false, 0, err
	case ok && (!match || s.out.Invert || s.out.quiet):
		return match, 0, nil
	case ok && s.m.longest >= 0 && s.m.tail() != nil:
		// The automaton decides an assertion one rune later.
		from = max(end-int64(s.m.longest)-2*utf8.UTFMax, 0)
	}
	at, err = s.matchFrom(from, r.size())
	return at >= 0, at, err
}

// matchFrom returns the start of the first match at or after a position of the line, by regexp; -1 if there is none.
func (s *lineScan) matchFrom(from, size int64) (int64, error) {
	line := &readerAtRunes{ctx: s.ctx, src: s.readerAt, at: s.base + from, end: s.base + size}
	re, group := s.m.re(), 0
	if from > 0 { // regexp must see the rune before, and take none after it for the start of the line
		before := make([]byte, min(from, 2*utf8.UTFMax)+1)
		_, err := s.readerAt.ReadAt(before, s.base+from-int64(len(before)-1))
		if err != nil && !errors.Is(err, io.EOF) {
			return -1, err
		}
		before = before[:runeStart(before)]
		_, n := utf8.DecodeLastRune(before)
		from = max(from-int64(2*utf8.UTFMax), 0) + int64(len(before)-n)
		line.at = s.base + from
		if n > 0 {
			re, group = s.m.tail(), 2
		}
	}
	loc := re.FindReaderSubmatchIndex(line)
	switch {
	case line.err != nil:
		return -1, line.err
	case s.ctx.Err() != nil:
		return -1, s.ctx.Err()
	case loc == nil:
		return -1, nil
	}
	return from + int64(loc[group]), nil
}

// runeStart returns where the rune begins that holds the last byte of b. An invalid byte is a rune of its own.
func runeStart(b []byte) int {
	last := len(b) - 1
	for i := last; i >= 0 && last-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if _, n := utf8.DecodeRune(b[i:]); i+n > last || !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return last
}

// longBlock is how many bytes of a long line are walked at once.
const longBlock = 256 << 10

// walkLong walks over a line that is read block by block, without its newline. It reports whether the line matches, and
// the position after the byte with which that is known. ok is false if the automaton was abandoned.
func (w *walker) walkLong(ctx context.Context, line io.Reader) (match bool, end int64, ok bool, err error) {
	buf := make([]byte, longBlock+utf8.UTFMax)
	base, fill := int64(0), 0
	w.q[0] = w.start
	for {
		if err := ctx.Err(); err != nil {
			return false, 0, false, err
		}
		n, err := io.ReadFull(line, buf[fill:longBlock])
		fill += n
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return false, 0, false, err
		}
		whole := fill
		if !last {
			whole = runes.Complete(buf[:fill])
		}
		at, ok := w.walkText(buf[:whole])
		if !ok {
			return false, 0, false, ctx.Err()
		}
		if at < whole {
			return true, base + int64(at) + 1, true, nil
		}
		if last {
			break
		}
		base += int64(whole)
		fill = copy(buf, buf[whole:fill])
	}
	_, ok = w.walk(newline, 0, 0)
	return w.q[0] == w.row(rowHit), base + int64(fill), ok, nil
}

// walkText is [walker.walk] for a part of a line that may be invalid: regexp reads each invalid byte as U+FFFD. It
// stops once the line is known to match.
func (w *walker) walkText(b []byte) (at int, ok bool) {
	for from := 0; from < len(b); from++ {
		n := runes.Invalid(b[from:])
		if n < 0 {
			n = len(b) - from
		}
		at, ok = w.walk(b[:from+n], from, 0)
		if from += n; !ok || at < from {
			return at, ok
		}
		if from < len(b) {
			const invalid = "\uFFFD"
			if at, ok = w.walk([]byte(invalid), 0, 0); !ok || at < len(invalid) {
				return from, ok
			}
		}
	}
	return len(b), true
}

// windowAround returns a window around position at of the line, and the position of the window in the line. If the text
// can be read only once, windowAround uses the bytes still in memory. If these do not include position at, the window
// is at the start of the line.
func (s *lineScan) windowAround(head []byte, r *longLineReader, at int64) ([]byte, int64, error) {
	size := s.out.Window
	if s.readerAt != nil {
		return s.rereadWindow(at, size)
	}
	size = min(size, s.m.sizes.history/2)
	if at+int64(size) <= int64(len(head)) {
		w, from := Window(head, int(at), size)
		return w, from, nil
	}
	if r.base+int64(r.end)-at < int64(size) && !r.done {
		if _, err := r.readMore(); err != nil {
			return nil, 0, err
		}
	}
	if at < r.base {
		w, from := Window(head, int(min(at, int64(len(head)))), size)
		return w, from, nil
	}
	w, from := Window(r.buf[:r.end], int(at-r.base), size)
	return bytes.Clone(w), r.base + from, nil
}

// rereadWindow is windowAround for a text that can be read again.
func (s *lineScan) rereadWindow(at int64, size int) ([]byte, int64, error) {
	from := max(0, at-int64(size))
	b := make([]byte, 2*size)
	n, err := s.readerAt.ReadAt(b, s.base+from)
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
