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
			s.endValue()
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
			s.endValue()
			return 0, LiteralEnd, ""
		case p[0] != s.word[0]:
			return 0, More, "in a literal (true, false or null)"
		}
		s.word = s.word[1:]
		return 1, More, ""
	}
	n, s.step = number(p, 0, s.step)
	switch {
	case n == len(p):
		return n, More, ""
	case !s.step.endsNumber() || isWord(p[n]):
		return n, More, "in a number"
	}
	s.endValue()
	return n, NumberEnd, ""
}

// numberSteps maps the step of a number and the next byte to the next step; a missing pair means that the byte cannot
// continue the number. '0' stands for a single zero, '1' for any other digit, 'e' for 'E' too and '+' for '-' too.
var numberSteps = func() (table [stepExpDigits + 1][256]step) {
	for from, next := range map[step]map[byte]step{
		stepMinus:     {'0': stepZero, '1': stepInt},
		stepZero:      {'.': stepPoint, 'e': stepExp},
		stepInt:       {'0': stepInt, '1': stepInt, '.': stepPoint, 'e': stepExp},
		stepPoint:     {'0': stepFrac, '1': stepFrac},
		stepFrac:      {'0': stepFrac, '1': stepFrac, 'e': stepExp},
		stepExp:       {'0': stepExpDigits, '1': stepExpDigits, '+': stepExpSign},
		stepExpSign:   {'0': stepExpDigits, '1': stepExpDigits},
		stepExpDigits: {'0': stepExpDigits, '1': stepExpDigits},
	} {
		for c, to := range next {
			for _, same := range map[byte]string{'1': "123456789", 'e': "eE", '+': "+-"}[c] + string(c) {
				table[from][same] = to
			}
		}
	}
	return table
}()

// number continues a number at p[i] and returns the position of the first byte that cannot belong to it, and the step
// reached.
func number(p []byte, i int, at step) (int, step) {
	for i < len(p) {
		next := numberSteps[at][p[i]]
		if next == 0 {
			break
		}
		at = next
		i++
	}
	return i, at
}

// endsNumber reports whether a number is valid if it ends at this step.
func (s step) endsNumber() bool {
	return s == stepZero || s == stepInt || s == stepFrac || s == stepExpDigits
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
