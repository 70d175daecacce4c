package lines

import (
	"context"
	"io"
	"unicode/utf8"
)

// Window is size bytes of text around the byte at (a quarter of them before it), cut between runes, and where it starts.
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

// lookEvery is how many bytes are read between two looks at the context: at 2,000 instructions about a tenth of a second.
const lookEvery = 4 << 10

// memory reads runes of a text that is held, looking at the context. With crlf, \r\n is read as one \n of two bytes.
type memory struct {
	ctx  context.Context
	b    []byte
	pos  int
	look int
	crlf bool
}

func (m *memory) ReadRune() (rune, int, error) {
	if m.pos >= len(m.b) {
		return 0, 0, io.EOF
	}
	if m.pos >= m.look {
		m.look = m.pos + lookEvery
		if err := m.ctx.Err(); err != nil {
			return 0, 0, err
		}
	}
	r, n := decode(m.b[m.pos:], m.crlf)
	m.pos += n
	return r, n, nil
}

// decode is the first rune of b, which is not empty.
func decode(b []byte, crlf bool) (rune, int) {
	c := b[0]
	if c >= utf8.RuneSelf {
		return utf8.DecodeRune(b)
	}
	if crlf && c == '\r' && len(b) > 1 && b[1] == '\n' {
		return '\n', 2
	}
	return rune(c), 1
}
