package linesearch

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// Window returns at most size bytes of text around index at, a quarter of them before at, and their offset in text. It
// does not split runes. It returns a text of at most size bytes whole.
func Window(text []byte, at, size int) (w []byte, from int64) {
	if len(text) <= size {
		return text, 0
	}
	start := max(0, min(at-size/4, len(text)-size))
	end := start + size
	for n := 0; n < utf8.UTFMax-1 && start > 0 && start < at && !utf8.RuneStart(text[start]); n++ {
		start++
	}
	for n := 0; n < utf8.UTFMax-1 && end < len(text) && end > start+1 && !utf8.RuneStart(text[end]); n++ {
		end--
	}
	return text[start:end], int64(start)
}

// ctxCheckBytes is the number of bytes or runes read between two context checks. With MaxProgram instructions, regexp
// takes about a tenth of a second for them.
const ctxCheckBytes = 4 << 10

// decodeRune decodes the first rune of b, which is not empty. With crlf set, \r\n is read as one \n of two bytes.
func decodeRune(b []byte, crlf bool) (rune, int) {
	if crlf && b[0] == '\r' && len(b) > 1 && b[1] == '\n' {
		return '\n', 2
	}
	return utf8.DecodeRune(b)
}

// readerAtRunes reads the runes of a range of an [io.ReaderAt] and checks the context.
type readerAtRunes struct {
	ctx     context.Context
	src     io.ReaderAt
	at, end int64
	crlf    bool
	buf     []byte
	pos     int
	err     error
}

func (a *readerAtRunes) ReadRune() (rune, int, error) {
	if len(a.buf)-a.pos < utf8.UTFMax && a.at < a.end {
		if err := a.refill(); err != nil {
			a.err = err
			return 0, 0, err
		}
	}
	if a.pos >= len(a.buf) {
		return 0, 0, io.EOF
	}
	r, n := decodeRune(a.buf[a.pos:], a.crlf)
	a.pos += n
	return r, n, nil
}

// refill checks the context and reads the next ctxCheckBytes bytes.
func (a *readerAtRunes) refill() error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if cap(a.buf) == 0 {
		a.buf = make([]byte, 0, ctxCheckBytes+utf8.UTFMax)
	}
	left := copy(a.buf[:cap(a.buf)], a.buf[a.pos:])
	want := int(min(int64(cap(a.buf)-left), a.end-a.at))
	n, err := a.src.ReadAt(a.buf[left:left+want], a.at)
	a.at += int64(n)
	a.buf, a.pos = a.buf[:left+n], 0
	if n < want {
		a.end = a.at // the text was truncated
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
