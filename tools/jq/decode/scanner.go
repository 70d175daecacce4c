package decode

import (
	"encoding/binary"
	"math/bits"
)

// maxFastDepth is the nesting that the fast decoder accepts.
const maxFastDepth = 200

// scanner skips values that are whole in memory, and checks that they are JSON. It accepts invalid UTF-8 in strings, as
// Decoder does.
type scanner struct {
	b   []byte
	Pos int
}

// SkipSpace moves to the next byte that is no white space and returns it, 0 at the end.
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
		return q.skipMany(depth+1, '}')
	case '[':
		return q.skipMany(depth+1, ']')
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

// skipMany skips an array or object.
func (q *scanner) skipMany(depth int, end byte) bool {
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

// quoted skips a string, from its first quote on.
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

// Eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plain returns the end of the run of ordinary bytes from i on: a quote, a backslash, a control character or the end of
// the text. wide is true if some of them are not ASCII.
func (q *scanner) plain(i int) (end int, wide bool) {
	b := q.b
	var seen uint64
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		// A byte's top bit is set where it was below what is taken from it; above the first such byte that may be wrong.
		stop := ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | (w - ' '*ones)
		if stop &^= w; stop&highs != 0 {
			n := bits.TrailingZeros64(stop & highs)
			seen |= w & (1<<(n&^7) - 1)
			return i + n/8, seen&highs != 0
		}
		seen |= w
	}
	for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' '; i++ {
		seen |= uint64(b[i])
	}
	return i, seen&highs != 0
}
