package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// tape is the rest of a long line, read as it is needed. What stands in buf[:ready] is text of the line; what
// follows may be the first half of a rune, a \r that may belong to the line end, or what stands after the line.
type tape struct {
	s     *scan
	buf   []byte
	lo    int64 // offset in the line of buf[0]
	old   int   // where in buf the new piece starts
	ready int
	fill  int
	after int // where in buf the next line starts, once done
	done  bool
	quit  error // why it could not be read on
}

// newTape goes on after the head of a line that fills s.buf. The head's last bytes may be held back.
func newTape(s *scan) *tape {
	past := s.m.bounds.history
	t := &tape{s: s, buf: make([]byte, past+s.m.bounds.block)}
	t.lo = int64(s.fill - past)
	t.fill = copy(t.buf, s.buf[s.fill-past:s.fill])
	t.ready = t.fill - t.unsure()
	t.old = t.ready
	return t
}

// unsure is how many of the last bytes read cannot be told yet.
func (t *tape) unsure() int {
	b := t.buf[:t.fill]
	if !t.s.m.cr && b[t.fill-1] == '\r' {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n < len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

// more reads the next piece of the line: buf[old:ready]. It returns false at the line's end.
func (t *tape) more() (bool, error) {
	if t.done {
		t.old = t.ready
		return false, nil
	}
	from := t.ready - min(t.ready, t.s.m.bounds.history)
	t.fill = copy(t.buf, t.buf[from:t.fill])
	t.lo += int64(from)
	t.ready -= from
	t.old = t.ready
	seen := t.fill
	for idle := 0; t.fill == seen && !t.s.eof; {
		if err := t.s.ctx.Err(); err != nil {
			return false, err
		}
		n, err := t.s.src.Read(t.buf[t.fill:])
		t.fill += n
		if err == io.EOF {
			t.s.eof = true
		} else if err != nil {
			return false, err
		} else if n == 0 {
			if idle++; idle == 100 {
				return false, io.ErrNoProgress
			}
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
		t.ready = t.fill - t.unsure()
	}
	return t.ready > t.old || !t.done, nil
}

// size is the length of the line so far.
func (t *tape) size() int64 { return t.lo + int64(t.ready) }

// runes reads the line from its start: the head, then the tape.
type runes struct {
	t    *tape
	head memory
	read int
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.head.pos < len(r.head.b) {
		return r.head.ReadRune()
	}
	for r.t.old >= r.t.ready {
		ok, err := r.t.more()
		if err != nil {
			r.t.quit = err
			return 0, 0, err
		}
		if !ok {
			return 0, 0, io.EOF
		}
	}
	if r.read++; r.read%lookEvery == 0 {
		if err := r.t.s.ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
	c, n := decode(r.t.buf[r.t.old:r.t.ready], false)
	r.t.old += n
	return c, n, nil
}

// long looks at one line that is longer than what is held, and leaves the buffer at the line after it.
//
// It is searched whole. Where it holds no needle that is known at the speed of reading. Otherwise the regexp runs over it from
// its start, a rune at a time, and looks at the context on its way.
func (s *scan) long() error {
	head := s.buf[:s.fill]
	t := newTape(s)
	head = head[:t.size()]
	o := s.t.o
	l := Line{Number: s.line, End: s.line, Offset: s.base}
	l.Text, l.At = Window(head, 0, o.Window)

	hit, at, err := s.searchLong(head, t)
	if err != nil {
		return err
	}
	if hit && !o.Invert && !s.t.quiet {
		l.Column = at + 1
		if l.Text, l.At, err = s.around(head, t, at); err != nil {
			return err
		}
	}
	for ok := true; ok; {
		if ok, err = t.more(); err != nil {
			return err
		}
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
		err = s.t.tell(l)
	}
	if err != nil {
		return err
	}
	if o.Before > 0 && !s.t.quiet {
		l.Match, l.Column = false, 0
		first, _ := Window(head, 0, o.Window)
		l.Text, l.At = bytes.Clone(first), 0
		s.keep(l)
	}
	s.line++
	s.base += t.lo + int64(t.after)
	s.fill = copy(s.buf, t.buf[t.after:t.fill])
	return nil
}

// searchLong says whether the line matches, and at which byte of it.
func (s *scan) searchLong(head []byte, t *tape) (hit bool, at int64, err error) {
	if len(s.f.hunts) > 0 && (s.m.sure || s.again != nil) {
		at, err = s.needleIn(head, t)
		if err != nil || at < 0 || s.m.sure {
			return at >= 0, at, err
		}
		if err := s.toEnd(t); err != nil {
			return false, 0, err
		}
		line := &again{ctx: s.ctx, src: s.again, at: s.base, end: s.base + t.size()}
		loc := s.m.re.FindReaderIndex(line)
		if line.quit != nil {
			return false, 0, line.quit
		}
		if loc == nil {
			return false, 0, s.ctx.Err()
		}
		return true, int64(loc[0]), s.ctx.Err()
	}
	r := &runes{t: t, head: memory{ctx: s.ctx, b: head}}
	loc := s.m.re.FindReaderIndex(r)
	if t.quit != nil {
		return false, 0, t.quit
	}
	if err := s.ctx.Err(); err != nil || loc == nil {
		return false, 0, err
	}
	return true, int64(loc[0]), nil
}

// needleIn is the place of the line's first needle, or -1.
func (s *scan) needleIn(head []byte, t *tape) (int64, error) {
	s.f.hunts.reset()
	if at, _ := s.f.hunts.find(head, 0); at < len(head) {
		return int64(at), nil
	}
	for {
		ok, err := t.more()
		if err != nil || !ok {
			return -1, err
		}
		from := max(0, t.old-s.f.hunts.longest()+1)
		s.f.hunts.reset()
		if at, _ := s.f.hunts.find(t.buf[:t.ready], from); at < t.ready {
			return t.lo + int64(at), nil
		}
		t.old = t.ready
	}
}

func (s *scan) toEnd(t *tape) error {
	for {
		if ok, err := t.more(); err != nil || !ok {
			return err
		}
	}
}

// around is a window around the byte at of the line: from the text itself where it can be read again, else from what
// is still held. Where neither has it, it is the line's start.
func (s *scan) around(head []byte, t *tape, at int64) ([]byte, int64, error) {
	size := s.t.o.Window
	if s.again != nil {
		return s.windowAgain(at, size)
	}
	size = min(size, s.m.bounds.history/2)
	if at+int64(size) <= int64(len(head)) {
		w, from := Window(head, int(at), size)
		return w, from, nil
	}
	if t.lo+int64(t.ready)-at < int64(size) && !t.done {
		if _, err := t.more(); err != nil {
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

// windowAgain reads a window of a long line once more.
func (s *scan) windowAgain(at int64, size int) ([]byte, int64, error) {
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

// again reads runes of a part of a text that can be read again.
type again struct {
	ctx     context.Context
	src     io.ReaderAt
	at, end int64
	crlf    bool
	buf     []byte
	pos     int
	quit    error
}

func (a *again) ReadRune() (rune, int, error) {
	if len(a.buf)-a.pos < utf8.UTFMax && a.at < a.end {
		if err := a.refill(); err != nil {
			a.quit = err
			return 0, 0, err
		}
	}
	if a.pos >= len(a.buf) {
		return 0, 0, io.EOF
	}
	r, n := decode(a.buf[a.pos:], a.crlf)
	a.pos += n
	return r, n, nil
}

// refill reads on; small pieces, since it also looks at the context.
func (a *again) refill() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if cap(a.buf) == 0 {
		a.buf = make([]byte, 0, lookEvery+utf8.UTFMax)
	}
	left := copy(a.buf[:cap(a.buf)], a.buf[a.pos:])
	want := int(min(int64(cap(a.buf)-left), a.end-a.at))
	n, err := a.src.ReadAt(a.buf[left:left+want], a.at)
	a.at += int64(n)
	a.buf, a.pos = a.buf[:left+n], 0
	if n < want {
		a.end = a.at // it has become shorter
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
