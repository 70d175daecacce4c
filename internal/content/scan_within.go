package content

import (
	"encoding/binary"
	"math/bits"
)

// within continues a string, literal or number and consumes n bytes of p. e is the end event if the value ended, else
// More. bad describes the error at p[n]; "" if none.
func (s *Scanner) within(p []byte) (n int, e Event, bad string) {
	switch s.step {
	case stepString:
		n = plain(p)
		switch {
		case n == len(p):
			return n, More, ""
		case p[n] == '"' && s.key:
			s.step = stepColon
			return n + 1, KeyEnd, ""
		case p[n] == '"':
			s.ended()
			return n + 1, StringEnd, ""
		case p[n] == '\\':
			s.step = stepEscape
			return n + 1, More, ""
		}
		return n, More, "in a string: control characters must be escaped"
	case stepEscape:
		switch p[0] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.step = stepString
		case 'u':
			s.step, s.hex = stepHex, 0
		default:
			return 0, More, "after a backslash in a string"
		}
		return 1, More, ""
	case stepHex:
		if !isHex(p[0]) {
			return 0, More, `in a \u escape: four hexadecimal digits must follow`
		}
		if s.hex++; s.hex == 4 {
			s.step = stepString
		}
		return 1, More, ""
	case stepLiteral:
		switch {
		case s.word == "" && isWord(p[0]):
			return 0, More, "after a literal"
		case s.word == "":
			s.ended()
			return 0, LiteralEnd, ""
		case p[0] != s.word[0]:
			return 0, More, "in a literal (true, false or null)"
		}
		s.word = s.word[1:]
		return 1, More, ""
	}
	n, done, ok := s.number(p)
	switch {
	case !ok:
		return n, More, "in a number"
	case done:
		s.ended()
		return n, NumberEnd, ""
	}
	return n, More, ""
}

// number continues a number. n is the number of bytes that belong to it, done reports whether the number is complete,
// and ok is false if p[n] is not allowed there.
func (s *Scanner) number(p []byte) (n int, done, ok bool) {
	for n < len(p) {
		c := p[n]
		digit := c-'0' < 10
		switch s.step {
		case stepMinus:
			switch {
			case c == '0':
				s.step = stepZero
			case digit:
				s.step = stepInt
			default:
				return n, false, false
			}
		case stepZero, stepInt:
			switch {
			case digit && s.step == stepInt:
				for n+1 < len(p) && p[n+1]-'0' < 10 {
					n++
				}
			case digit:
				return n, false, false // a leading zero
			case c == '.':
				s.step = stepPoint
			case c|0x20 == 'e':
				s.step = stepExp
			default:
				return n, !isWord(c), !isWord(c)
			}
		case stepPoint:
			if !digit {
				return n, false, false
			}
			s.step = stepFrac
		case stepFrac:
			switch {
			case digit:
			case c|0x20 == 'e':
				s.step = stepExp
			default:
				return n, !isWord(c), !isWord(c)
			}
		case stepExp:
			switch {
			case c == '+' || c == '-':
				s.step = stepExpSign
			case digit:
				s.step = stepExpDigits
			default:
				return n, false, false
			}
		case stepExpSign:
			if !digit {
				return n, false, false
			}
			s.step = stepExpDigits
		case stepExpDigits:
			if !digit {
				return n, !isWord(c), !isWord(c)
			}
		}
		n++
	}
	return n, false, true
}

// isWord reports whether c, directly after a number or literal, makes it invalid: "truex", "1.2.3", "2026-11".
func isWord(c byte) bool {
	return c-'0' < 10 || c|0x20-'a' < 26 || c == '_' || c == '.' || c == '-' || c == '+' || c >= 0x80
}

func isHex(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 6 }

// plain returns the number of bytes of p before the first '"', '\\' or control character. It tests eight bytes at a
// time because most of a JSON text is in strings.
func plain(p []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	i := 0
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		// hit has the high bit set of each byte that is a quote, a backslash or below 0x20. A borrow may also mark a
		// wrong byte above the first hit, but never below it: the lowest set bit is correct.
		hit := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}
