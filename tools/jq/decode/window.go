package decode

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// DefaultWindow is the usual size of a window, and so of a chunk, in bytes.
const DefaultWindow = 256 << 10

// maxWindows is how many times the size of a window a value may have to be decoded at once. A larger value is decoded
// member by member, or while it is read.
const maxWindows = 4

// Window is the part of a text that is held in memory while the text is read.
type Window struct {
	r    io.Reader
	buf  []byte
	i    int   // index in buf of the next byte
	base int64 // offset of buf[0] in the text
	end  bool  // buf holds the rest of the text
	size int   // bytes of a buffer
	free chan []byte
}

// NewWindow returns a window of size bytes over r, which is the text from offset at. The window keeps up to spare free
// buffers for reuse.
func NewWindow(r io.Reader, size int, at int64, spare int) *Window {
	return &Window{r: r, size: size, base: at, free: make(chan []byte, spare)}
}

// Offset returns the offset of the next byte in the text.
func (w *Window) Offset() int64 { return w.base + int64(w.i) }

// more reads more of the text after the bytes that are held and not yet read. It returns false at the end of the text.
func (w *Window) more() (bool, error) {
	if w.end {
		return false, nil
	}
	left := len(w.buf) - w.i
	if w.i > 0 || cap(w.buf)-len(w.buf) < w.size/2 {
		var to []byte
		if left <= w.size/2 {
			to = w.buffer()
		} else {
			to = make([]byte, 0, 2*left+w.size)
		}
		to = append(to, w.buf[w.i:]...)
		w.Recycle(w.buf)
		w.base, w.i, w.buf = w.Offset(), 0, to
	}
	return w.read()
}

func (w *Window) read() (bool, error) {
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

// buffer returns an empty buffer, a recycled one if possible.
func (w *Window) buffer() []byte {
	select {
	case b := <-w.free:
		return b[:0]
	default:
		return make([]byte, 0, w.size)
	}
}

// Recycle keeps b for reuse. The caller must not use b any more. It may be called concurrently.
func (w *Window) Recycle(b []byte) {
	if cap(b) != w.size {
		return
	}
	select {
	case w.free <- b:
	default:
	}
}

// Next skips white space and returns the next byte without reading that byte; 0 at the end of the text, and for NUL.
func (w *Window) Next() (byte, error) {
	for {
		q := scanner{w.buf, w.i}
		c := q.SkipSpace()
		w.i = q.Pos
		if w.i < len(w.buf) {
			return c, nil
		}
		if more, err := w.more(); !more {
			return 0, err
		}
	}
}

// cut removes the next n bytes from the window and returns them with their offset. The caller owns the bytes.
func (w *Window) cut(n int) (text []byte, at int64) {
	text, at = w.buf[w.i:w.i+n], w.Offset()
	rest := w.buf[w.i+n:]
	to := w.buffer()
	if len(rest) > cap(to) {
		to = make([]byte, 0, len(rest)+w.size)
	}
	w.buf, w.base, w.i = append(to, rest...), at+int64(n), 0
	return text, at
}

// Rest returns a reader of the text from the next byte on.
func (w *Window) Rest() io.Reader { return io.MultiReader(bytes.NewReader(w.buf[w.i:]), w.r) }

// Skip skips n bytes, which the window must hold.
func (w *Window) Skip(n int) { w.i += n }

// ContinueAfter moves the window to the byte after those that d has read of r, the Rest of this window.
func (w *Window) ContinueAfter(d *Decoder, r io.Reader) {
	w.buf, w.base, w.i, w.r, w.end = bytes.Clone(d.d.UnreadBuffer()), d.offset(), 0, r, false
}

// Key reads the key of a member and its colon. If something else follows, ok is false and the window does not move.
func (w *Window) Key() (key string, ok bool, err error) {
	for {
		q := scanner{w.buf, w.i}
		if q.SkipSpace() == '"' && q.quoted() {
			end := q.Pos
			if q.SkipSpace() == ':' {
				b, _ := jsontext.AppendUnquote(nil, w.buf[w.i:end]) // bad UTF-8 is replaced
				w.i = q.Pos + 1
				return string(b), true, nil
			}
			if q.Pos < len(w.buf) {
				return "", false, nil
			}
		} else if q.Pos < len(w.buf) {
			if q.b[q.Pos] != '"' {
				return "", false, nil
			}
			closed := scanner{w.buf, q.Pos + 1}
			if _, open := closed.endOfString(); !open {
				return "", false, nil
			}
		}
		if more, err := w.more(); !more {
			return "", false, err
		}
	}
}

// FastValue decodes the parts of the next value that n reads. If the fast decoder refuses the value, or the value does
// not fit the window, ok is false and the window does not move.
func (w *Window) FastValue(q *FastDecoder, n *Projection, twice bool) (v any, ok bool, err error) {
	for tried := 0; ; {
		if held := len(w.buf) - w.i; held >= 2*tried || w.end {
			tried = held
			q.Reset(w.buf[w.i:], false, twice)
			if v, ok := q.Value(n, 0); ok && q.Pos < held {
				w.i += q.Pos
				return v, true, nil
			}
			if held >= maxWindows*w.size || w.end {
				return nil, false, nil
			}
		}
		if _, err := w.more(); err != nil {
			return nil, false, err
		}
	}
}

// Chunk is a part of a text that holds whole values and their separators.
type Chunk struct {
	Text []byte
	At   int64 // offset in the text
	Last bool  // the chunk is followed by the end of the array
	Open bool  // the chunk is followed by the end of the text
}

// ErrTooLarge means that a value does not fit the window.
var ErrTooLarge = errors.New("too large")

// Chunk removes the next values from the window, about as many as it holds, and returns them. It skips the closing
// bracket of an array.
func (w *Window) Chunk(array bool) (c Chunk, err error) {
	s, err := w.findChunk(array)
	if err != nil {
		return c, err
	}
	n := s.cut
	switch {
	case s.ended:
		n = s.i
	case w.end:
		n = len(w.buf) - w.i
	}
	c.Open = w.end && !s.ended
	if s.ended {
		if c.Last = w.buf[w.i+n] == ']'; !c.Last {
			c.Open, n = true, n+1 // the wrong bracket is part of the chunk
		}
	}
	c.Text, c.At = w.cut(n)
	if c.Last {
		w.i++
	}
	return c, nil
}

// findChunk reads until the window holds a chunk.
func (w *Window) findChunk(array bool) (s scan, err error) {
	for {
		s.over(w.buf[w.i:], array)
		held := len(w.buf) - w.i
		switch {
		case s.ended || w.end || s.cut > 0 && held >= w.size*3/4:
			return s, nil
		case s.cut == 0 && held >= maxWindows*w.size:
			return s, ErrTooLarge
		}
		if _, err := w.more(); err != nil {
			return s, err
		}
	}
}

// scan finds the ends of values by quotes and brackets alone, and does not check the text between them. Up to the first
// syntax error, scan and a parser agree on quotes and brackets. So the error lies before the end that scan finds.
type scan struct {
	i      int  // bytes scanned, from the next byte of the window on
	depth  int  // number of open brackets
	inside bool // i is inside a string
	cut    int  // index after the last separator of values at depth 0; 0 if there is none
	ended  bool // the closing bracket of the array is at i
}

// These are the classes of bytes that scan tells apart.
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

// IsPlain reports whether c may belong to a number or literal.
func IsPlain(c byte) bool { return classes[c] == plainByte }

// IsSpace reports whether c is white space.
func IsSpace(c byte) bool { return classes[c] == spaceByte }

// over scans the rest of b. In an array, values end before a comma; elsewhere at white space and at brackets.
func (s *scan) over(b []byte, array bool) {
	i := s.i
	for i < len(b) {
		if s.inside {
			q := scanner{b, i}
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

// endOfString returns the index after the closing quote of a string; open is true if the text ends before.
func (q *scanner) endOfString() (i int, open bool) {
	for i = q.Pos; ; {
		if i, _ = q.plain(i); i >= len(q.b) {
			return len(q.b), true
		}
		switch {
		case q.b[i] == '"':
			return i + 1, false
		case q.b[i] != '\\':
			i++
		case i+1 >= len(q.b):
			return i, true // the next call must start at the backslash
		default:
			i += 2
		}
	}
}
