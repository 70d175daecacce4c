package jq

import (
	"encoding/binary"
	"math/bits"
)

// quickText walks over values that lie whole in memory, and sees that they are JSON.
// Bytes that are not UTF-8 are taken in strings, as decoder takes them.
type quickText struct {
	b []byte
	i int
}

// space moves to the next byte that is no white space, and gives it; 0: there is none.
func (q *quickText) space() byte {
	for q.i < len(q.b) {
		c := q.b[q.i]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		q.i++
	}
	return 0
}

// skip moves over a value. False: refused.
func (q *quickText) skip(depth int) bool {
	switch q.space() {
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

// skipMany moves over an array or object up to its end.
func (q *quickText) skipMany(depth int, end byte) bool {
	if depth > quickDepth {
		return false
	}
	q.i++
	if q.space() == end {
		q.i++
		return true
	}
	for {
		if end == '}' {
			if q.space() != '"' || !q.quoted() || q.space() != ':' {
				return false
			}
			q.i++
		}
		if !q.skip(depth) {
			return false
		}
		switch q.space() {
		case ',':
			q.i++
		case end:
			q.i++
			return true
		default:
			return false
		}
	}
}

func (q *quickText) word(w string) bool {
	if len(q.b)-q.i < len(w) || string(q.b[q.i:q.i+len(w)]) != w {
		return false
	}
	q.i += len(w)
	return true
}

func (q *quickText) number() bool {
	if q.at('-') {
		q.i++
	}
	if q.at('0') {
		q.i++
	} else if !q.digits() {
		return false
	}
	if q.at('.') {
		if q.i++; !q.digits() {
			return false
		}
	}
	if q.at('e') || q.at('E') {
		q.i++
		if q.at('+') || q.at('-') {
			q.i++
		}
		return q.digits()
	}
	return true
}

func (q *quickText) at(c byte) bool { return q.i < len(q.b) && q.b[q.i] == c }

func (q *quickText) digits() bool {
	start := q.i
	for q.i < len(q.b) && q.b[q.i]-'0' <= 9 {
		q.i++
	}
	return q.i > start
}

// quoted moves over a string, from its first quote.
func (q *quickText) quoted() bool {
	for i := q.i + 1; ; {
		end, _ := q.plain(i)
		if end+1 >= len(q.b) && (end >= len(q.b) || q.b[end] != '"') || q.b[end] < ' ' {
			return false
		}
		if q.b[end] == '"' {
			q.i = end + 1
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

// plain is where the run of bytes that need no look ends: at a quote, a
// backslash, a control character or the end; wide: some in it are not ASCII.
func (q *quickText) plain(i int) (end int, wide bool) {
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
