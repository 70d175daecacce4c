package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/runes"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// window is how much of a source is read at a time.
const window = 64 << 10

// text reads a source as UTF-8 at any place. Where the stored bytes are not the text it is decoded from
// the start as far as needed, once as long as the places asked for go forward.
type text struct {
	ctx  context.Context
	src  *tools.Source
	out  tools.Output
	size int64 // −1: not known yet
	buf  []byte

	decoded io.Reader // nil where the stored bytes are the text
	pos     int64     // of decoded
}

func newText(ctx context.Context, src *tools.Source, out tools.Output) *text {
	t := &text{ctx: ctx, src: src, out: out, size: src.Size}
	if !src.Plain() {
		t.size = -1
	}
	return t
}

func (t *text) plain() bool { return t.src.Plain() }

// ReadAt is of the text. It looks at the context, so that no loop over it outlives its call.
func (t *text) ReadAt(p []byte, off int64) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	if t.plain() {
		if off >= t.size {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), t.size-off)]
		n, err := t.src.ReadAt(p, off)
		if n > 0 && errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	if t.decoded == nil || off < t.pos {
		r, err := t.src.Text()
		if err != nil {
			return 0, err
		}
		t.decoded, t.pos = r, 0
	}
	for t.pos < off {
		if err := t.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.CopyN(io.Discard, t.decoded, min(off-t.pos, 1<<20))
		if t.pos += n; err != nil {
			return 0, t.ended(err)
		}
	}
	n, err := io.ReadFull(t.decoded, p)
	t.pos += int64(n)
	if n > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = nil
	}
	return n, t.ended(err)
}

// ended notes the size where the text ends.
func (t *text) ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.size = t.pos
		return io.EOF
	}
	return err
}

// total is the size of the text in bytes.
func (t *text) total() (int64, error) {
	if t.size < 0 {
		if err := t.walk(0, func([]byte) bool { return true }); err != nil {
			return 0, err
		}
		t.size = t.pos
	}
	return t.size, nil
}

// walk hands on the text from off, a window at a time, until take is false or the text ends.
func (t *text) walk(off int64, take func(p []byte) bool) error {
	if t.buf == nil {
		t.buf = make([]byte, window)
	}
	for {
		n, err := t.ReadAt(t.buf, off)
		off += int64(n)
		if n > 0 && !take(t.buf[:n]) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.out.Progress(off, t.size, "bytes read")
	}
}

// reader reads from off on. It goes its own way: what it has read is not lost to others.
func (t *text) reader(off int64) io.Reader { return &textReader{t, off} }

type textReader struct {
	t   *text
	off int64
}

func (r *textReader) Read(p []byte) (int, error) {
	n, err := r.t.ReadAt(p, r.off)
	r.off += int64(n)
	return n, err
}

// lines counts the lines from off on, as a reader does: what stands after the last newline counts.
func (t *text) lines(off int64) (int64, error) {
	var n int64
	last := byte('\n')
	err := t.walk(off, func(p []byte) bool {
		n += int64(bytes.Count(p, []byte{'\n'}))
		last = p[len(p)-1]
		return true
	})
	if last != '\n' {
		n++
	}
	return n, err
}

// skipLines is where the line begins that is n lines after the one at off; passed is fewer than n where the text ends before.
func (t *text) skipLines(off, n int64) (at, passed int64, err error) {
	at = off
	if n == 0 {
		return at, 0, nil
	}
	err = t.walk(off, func(p []byte) bool {
		if c := int64(bytes.Count(p, []byte{'\n'})); passed+c < n {
			passed += c
			at += int64(len(p))
			return true
		}
		for passed < n {
			i := bytes.IndexByte(p, '\n') + 1
			p = p[i:]
			at += int64(i)
			passed++
		}
		return false
	})
	return at, passed, err
}

// skipChars is where the char stands that is n chars after the one at off; passed is fewer than n where the text ends before.
// An invalid byte is a char.
func (t *text) skipChars(off, n int64) (at, passed int64, err error) {
	at = off
	if n == 0 {
		return at, 0, nil
	}
	var held []byte // a char that the end of a window cut
	err = t.walk(off, func(p []byte) bool {
		if len(held) > 0 {
			p = append(held, p...)
			held = nil
		}
		for len(p) > 0 && passed < n {
			if !utf8.FullRune(p) {
				held = bytes.Clone(p)
				return true
			}
			if c := int64(len(p)); c < n-passed && c > 4 { // all of it but its end lies before: count, do not look for the place
				whole := runes.Complete(p)
				passed += int64(utf8.RuneCount(p[:whole]))
				at += int64(whole)
				held = bytes.Clone(p[whole:])
				return true
			}
			_, size := utf8.DecodeRune(p)
			p = p[size:]
			at += int64(size)
			passed++
		}
		return passed < n
	})
	for err == nil && len(held) > 0 && passed < n { // cut by the end of the text: each byte is one
		held = held[1:]
		at++
		passed++
	}
	return at, passed, err
}
