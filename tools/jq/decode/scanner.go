package decode

import (
	"encoding/binary"
	"math/bits"
)

// maxFastDepth is how deep a value may be nested for the fast decoder.
const maxFastDepth = 200

// scanner skips values in memory and checks that they are JSON. Like Decoder, it accepts invalid UTF-8 in strings.
type scanner struct {
	b   []byte
	Pos int
}

// SkipSpace moves to the next byte that is not white space and returns that byte, 0 at the end.
func (q *scanner) SkipSpace() byte {
	for q.Pos < len(q.b) {
		c := q.b[q.Pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		q.Pos++
	}
	return 0
}

// Skip skips a value. It returns false if it refuses the value.
func (q *scanner) Skip(depth int) bool {
	switch q.SkipSpace() {
	case '{':
		return q.skipContainer(depth+1, '}')
	case '[':
		return q.skipContainer(depth+1, ']')
	case '"':
		return q.quoted()
	case 't':
		return q.word("true")
	case 'f':
		return q.word("false")
	case 'n':
		return q.word("null")
	default:
		return q.number()
	}
}

// skipContainer skips an array or object.
func (q *scanner) skipContainer(depth int, end byte) bool {
	if depth > maxFastDepth {
		return false
	}
	q.Pos++
	if q.SkipSpace() == end {
		q.Pos++
		return true
	}
	for {
		if end == '}' {
			if q.SkipSpace() != '"' || !q.quoted() || q.SkipSpace() != ':' {
				return false
			}
			q.Pos++
		}
		if !q.Skip(depth) {
			return false
		}
		switch q.SkipSpace() {
		case ',':
			q.Pos++
		case end:
			q.Pos++
			return true
		default:
			return false
		}
	}
}

func (q *scanner) word(w string) bool {
	if len(q.b)-q.Pos < len(w) || string(q.b[q.Pos:q.Pos+len(w)]) != w {
		return false
	}
	q.Pos += len(w)
	return true
}

func (q *scanner) number() bool {
	if q.at('-') {
		q.Pos++
	}
	if q.at('0') {
		q.Pos++
	} else if !q.digits() {
		return false
	}
	if q.at('.') {
		if q.Pos++; !q.digits() {
			return false
		}
	}
	if q.at('e') || q.at('E') {
		q.Pos++
		if q.at('+') || q.at('-') {
			q.Pos++
		}
		return q.digits()
	}
	return true
}

func (q *scanner) at(c byte) bool { return q.Pos < len(q.b) && q.b[q.Pos] == c }

func (q *scanner) digits() bool {
	start := q.Pos
	for q.Pos < len(q.b) && q.b[q.Pos]-'0' <= 9 {
		q.Pos++
	}
	return q.Pos > start
}

// quoted skips a string, starting at its first quote. It returns false if the string is not valid or does not end.
func (q *scanner) quoted() bool {
	for i := q.Pos + 1; ; {
		end, _ := q.plain(i)
		if end+1 >= len(q.b) && (end >= len(q.b) || q.b[end] != '"') || q.b[end] < ' ' {
			return false
		}
		if q.b[end] == '"' {
			q.Pos = end + 1
			return true
		}
		switch q.b[end+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i = end + 2
		case 'u':
			if i = end + 6; i > len(q.b) || !hex(q.b[end+2:i]) {
				return false
			}
		default:
			return false
		}
	}
}

func hex(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 && (c|0x20)-'a' > 5 {
			return false
		}
	}
	return true
}

// ones and highs have the lowest and the highest bit of each of eight bytes.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plain returns the index of the next quote, backslash or control character from i on, or the end of the text. wide is
// true if a byte before is not ASCII. It reads eight bytes at a time.
func (q *scanner) plain(i int) (end int, wide bool) {
	b := q.b
	var or uint64 // all bytes before end, combined by OR
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// The subtraction sets the highest bit of a byte that is a quote, a backslash or below a space. It borrows from the
		// bytes after the first such byte, which may then be wrong; only the first one is used. &^ drops bytes that are not
		// ASCII.
		stop := ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | (w - ' '*ones)
		if stop &^= w; stop&highs != 0 {
			n := bits.TrailingZeros64(stop & highs)
			or |= w & (1<<(n&^7) - 1)
			return i + n/8, or&highs != 0
		}
		or |= w
	}
	for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' '; i++ {
		or |= uint64(b[i])
	}
	return i, or&highs != 0
}
