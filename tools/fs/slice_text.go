package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// window is the number of bytes of a source that are read at a time.
const window = 64 << 10

// maxRecent is the number of decoded bytes that a sourceText holds at least, once it has read so many.
const maxRecent = 1 << 20

// sourceText reads a source as UTF-8 at any offset. A source in another encoding is decoded from the start; reading
// backwards beyond what it holds starts over.
type sourceText struct {
	ctx  context.Context
	src  *source.Source
	out  tools.Output
	size int64 // −1: not known yet
	buf  []byte

	decoded io.Reader // nil where the stored bytes are the text
	pos     int64     // of decoded
	recent  []byte    // the decoded text before pos
}

func newSourceText(ctx context.Context, src *source.Source, out tools.Output) *sourceText {
	t := &sourceText{ctx: ctx, src: src, out: out, size: src.Size}
	if !src.Plain() {
		t.size = -1
	}
	return t
}

// ReadAt reads the decoded text at an offset. It checks the context, so that loops end with their call.
func (t *sourceText) ReadAt(p []byte, off int64) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	if t.src.Plain() {
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
	if held := t.pos - off; held > 0 && held <= int64(len(t.recent)) {
		return copy(p, t.recent[int64(len(t.recent))-held:]), nil
	}
	if t.decoded == nil || off < t.pos {
		r, err := t.src.Text()
		if err != nil {
			return 0, err
		}
		t.decoded, t.pos, t.recent = r, 0, nil
	}
	for t.pos < off {
		if err := t.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := io.CopyN(io.Discard, t.decoded, min(off-t.pos, 1<<20))
		t.recent = nil
		if t.pos += n; err != nil {
			return 0, t.setSizeAtEOF(err)
		}
	}
	n, err := io.ReadFull(t.decoded, p)
	t.pos += int64(n)
	if t.recent = append(t.recent, p[:n]...); len(t.recent) > 2*maxRecent {
		t.recent = append(t.recent[:0], t.recent[len(t.recent)-maxRecent:]...)
	}
	if n > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = nil
	}
	return n, t.setSizeAtEOF(err)
}

// setSizeAtEOF sets the size if err is the end of the text, and returns io.EOF for it.
func (t *sourceText) setSizeAtEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.size = t.pos
		return io.EOF
	}
	return err
}

// totalBytes returns the size of the text in bytes. It reads a decoded text to its end.
func (t *sourceText) totalBytes() (int64, error) {
	if t.size < 0 {
		if err := t.eachWindow(0, func([]byte) bool { return true }); err != nil {
			return 0, err
		}
		t.size = t.pos
	}
	return t.size, nil
}

// eachWindow calls take with the text from off, one window at a time, until take returns false or the text ends.
func (t *sourceText) eachWindow(off int64, take func(p []byte) bool) error {
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

// reader returns a reader from off. Readers of one text have their own positions.
func (t *sourceText) reader(off int64) io.Reader {
	return io.NewSectionReader(t, off, math.MaxInt64-off)
}

// countLines returns the number of lines from off; text after the last newline counts as a line.
func (t *sourceText) countLines(off int64) (int64, error) {
	var lines runes.LineCounter
	err := t.eachWindow(off, func(p []byte) bool {
		_, _ = lines.Write(p)
		return true
	})
	return lines.Lines(), err
}

// skipLines returns the offset of the line that is n lines after the one at off; passed is less than n if the text
// ends before.
func (t *sourceText) skipLines(off, n int64) (at, passed int64, err error) {
	at = off
	if n == 0 {
		return at, 0, nil
	}
	err = t.eachWindow(off, func(p []byte) bool {
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

// skipChars returns the offset of the char that is n chars after the one at off; passed is less than n if the text
// ends before. An invalid byte counts as a char.
func (t *sourceText) skipChars(off, n int64) (at, passed int64, err error) {
	at = off
	if n == 0 {
		return at, 0, nil
	}
	var held []byte // an incomplete char at the end of a window
	err = t.eachWindow(off, func(p []byte) bool {
		if len(held) > 0 {
			p = append(held, p...)
		}
		whole := runes.Complete(p)
		held, p = bytes.Clone(p[whole:]), p[:whole]
		if c := int64(utf8.RuneCount(p)); c <= n-passed {
			passed += c
			at += int64(whole)
			return passed < n
		}
		for ; passed < n; passed++ {
			_, size := utf8.DecodeRune(p)
			p = p[size:]
			at += int64(size)
		}
		return false
	})
	for err == nil && len(held) > 0 && passed < n { // cut by the end of the text: each byte counts as a char
		held = held[1:]
		at++
		passed++
	}
	return at, passed, err
}
