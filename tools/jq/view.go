package jq

import (
	"bytes"
	"errors"
	"io"
)

const (
	windowSize = 256 << 10 // bytes read at once, and of a batch
	windowMost = 4         // windows that one value may fill; a larger one is taken apart, or decoded as it is read
)

// view is the part of a text that is looked at.
type view struct {
	r    io.Reader
	buf  []byte
	i    int   // what comes next in buf
	base int64 // of buf[0] in the text
	end  bool  // buf holds the rest of the text
	size int   // windowSize, but in tests
	free chan []byte
}

func newView(r io.Reader, size int) *view {
	return &view{r: r, size: size, free: make(chan []byte, lanes+4)}
}

// offset is where in the text the next byte stands.
func (w *view) offset() int64 { return w.base + int64(w.i) }

// more reads more of the text behind what is held, and keeps what comes next. False: there is no more.
func (w *view) more() (bool, error) {
	if w.end {
		return false, nil
	}
	left := len(w.buf) - w.i
	if w.i > 0 || cap(w.buf)-len(w.buf) < w.size/2 {
		var to []byte
		if left <= w.size/2 {
			to = w.take()
		} else {
			to = make([]byte, 0, 2*left+w.size)
		}
		to = append(to, w.buf[w.i:]...)
		w.give(w.buf)
		w.base, w.i, w.buf = w.offset(), 0, to
	}
	return w.read()
}

func (w *view) read() (bool, error) {
	for range 100 {
		n, err := w.r.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		if errors.Is(err, io.EOF) {
			w.end = true
			return n > 0, nil
		}
		if err != nil {
			return false, err
		}
		if n > 0 {
			return true, nil
		}
	}
	return false, io.ErrNoProgress
}

// take gives an empty buffer, give takes one back.
func (w *view) take() []byte {
	select {
	case b := <-w.free:
		return b[:0]
	default:
		return make([]byte, 0, w.size)
	}
}

func (w *view) give(b []byte) {
	if cap(b) != w.size {
		return
	}
	select {
	case w.free <- b:
	default:
	}
}

// next is the next byte that is no white space; 0: there is none, or it is NUL.
func (w *view) next() (byte, error) {
	for {
		q := quickText{w.buf, w.i}
		c := q.space()
		if w.i = q.i; w.i < len(w.buf) {
			return c, nil
		}
		if more, err := w.more(); !more {
			return 0, err
		}
	}
}

// cut takes from the window all that its scan went over up to n bytes from what comes next, as a text of its own.
func (w *view) cut(n int) (text []byte, at int64) {
	text, at = w.buf[w.i:w.i+n], w.offset()
	rest := w.buf[w.i+n:]
	to := w.take()
	if len(rest) > cap(to) {
		to = make([]byte, 0, len(rest)+w.size)
	}
	w.buf, w.base, w.i = append(to, rest...), at+int64(n), 0
	return text, at
}

// replace puts a text that was not used up in place of what comes next.
func (w *view) replace(rest []byte, at int64, r io.Reader) {
	w.buf, w.base, w.i, w.r, w.end = bytes.Clone(rest), at, 0, r, false
}

// scan finds where values end, by quotes and brackets alone: what lies between
// may be wrong. Where text is JSON up to a point, scan and a parser agree on what a bracket or a
// quote is up to this point; so whatever is wrong with a value is wrong before the end scan finds for it.
type scan struct {
	i      int  // bytes that were looked at, from what comes next in the window
	depth  int  // of open brackets
	inside bool // a string
	cut    int  // after the last separator of values at depth 0; 0: none
	ended  bool // the array's own bracket stands at i
}

// Classes of bytes for scan.
const (
	plainByte = iota
	quoteByte
	openByte
	closeByte
	commaByte
	spaceByte
)

var classes = [256]byte{
	'"': quoteByte, '[': openByte, '{': openByte, ']': closeByte, '}': closeByte,
	',': commaByte, ' ': spaceByte, '\n': spaceByte, '\r': spaceByte, '\t': spaceByte,
}

// over looks at the rest of b. In an array values end before a comma; else at white space and at brackets.
func (s *scan) over(b []byte, array bool) {
	i := s.i
	for i < len(b) {
		if s.inside {
			q := quickText{b, i}
			if i, s.inside = q.endOfString(); s.inside {
				break
			}
			continue
		}
		switch classes[b[i]] {
		case quoteByte:
			s.inside = true
		case openByte:
			s.depth++
		case closeByte:
			if s.depth--; s.depth < 0 {
				s.depth = 0
				if array {
					s.i, s.ended = i, true
					return
				}
			}
			if s.depth == 0 && !array {
				s.cut = i + 1
			}
		case commaByte:
			if s.depth == 0 && array {
				s.cut = i + 1
			}
		case spaceByte:
			if s.depth == 0 && !array {
				s.cut = i + 1
			}
		}
		i++
	}
	s.i = i
}

// endOfString is behind the quote that ends the string; open: it does not end here.
func (q *quickText) endOfString() (i int, open bool) {
	for i = q.i; ; {
		if i, _ = q.plain(i); i >= len(q.b) {
			return len(q.b), true
		}
		switch {
		case q.b[i] == '"':
			return i + 1, false
		case q.b[i] != '\\':
			i++
		case i+1 >= len(q.b):
			return i, true // and looked at again
		default:
			i += 2
		}
	}
}
