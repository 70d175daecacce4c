package tokens

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/tokens/tables"
)

// The two encodings split a text into pieces before they merge bytes. Their patterns, as published with tiktoken:
//
//	o200k_base:
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k_base:
//	  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// The patterns are matched by hand here, because no regexp engine is linear on them.

type class = tables.Class

const (
	upper   = tables.Upper
	lower   = tables.Lower
	letter  = tables.Letter
	number  = tables.Number
	space   = tables.Space
	newline = tables.Newline
	wide    = class(1 << 7) // not ASCII: use the class of the rune
)

// byteClass classifies bytes without reading the embedded tables.
var byteClass = func() (of [256]class) {
	for b := range of {
		switch {
		case b == '\r' || b == '\n':
			of[b] = space | newline
		case b >= '\t' && b <= '\r' || b == ' ':
			of[b] = space
		case b >= 'a' && b <= 'z':
			of[b] = letter | lower
		case b >= 'A' && b <= 'Z':
			of[b] = letter | upper
		case b >= '0' && b <= '9':
			of[b] = number
		case b >= utf8.RuneSelf:
			of[b] = wide
		}
	}
	return of
}()

// classAt returns the class and size of the rune at i; at the end of s the size is 0. s must be valid UTF-8.
func classAt(s []byte, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := byteClass[s[i]]; c != wide {
		return c, 1
	}
	return runeClass(s[i:])
}

// runeClass is classAt for a non-ASCII rune.
func runeClass(s []byte) (class, int) {
	switch {
	case s[0] < 0xe0 && len(s) >= 2:
		return tables.ClassOf(rune(s[0]&0x1f)<<6 | rune(s[1]&0x3f)), 2
	case s[0] < 0xf0 && len(s) >= 3:
		return tables.ClassOf(rune3(s)), 3
	}
	r, n := utf8.DecodeRune(s)
	return tables.ClassOf(r), n
}

// rune3 decodes a rune of three bytes.
func rune3(s []byte) rune { return rune(s[0]&0xf)<<12 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f) }

// runEnd returns the end of the longest run of runes from i that belong to any class in of.
func runEnd(s []byte, i int, of class) int {
	for {
		for i < len(s) && byteClass[s[i]]&of != 0 {
			i++
		}
		if of&(letter|upper|lower) != 0 {
			i = caseless(s, i)
		}
		if i >= len(s) {
			return i
		}
		if s[i] < utf8.RuneSelf {
			if byteClass[s[i]]&of != 0 {
				continue
			}
			return i
		}
		c, n := runeClass(s[i:])
		if c&of == 0 {
			return i
		}
		i += n
	}
}

// caselessFrom maps a lead byte to the lowest second byte that always begins a three-byte letter without case: U+4E00
// to U+9FFF are ideographs, U+AC00 to U+CFFF Hangul syllables.
var caselessFrom = func() (from [256]byte) {
	for b := range from {
		from[b] = 0xff
	}
	from[0xe4], from[0xea] = 0xb8, 0xb0
	for _, b := range []byte{0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xeb, 0xec} {
		from[b] = 0x80
	}
	return from
}()

// caseless returns the end of the run of three-byte letters without case from i. s must be valid UTF-8.
func caseless(s []byte, i int) int {
	for len(s)-i >= 3 && s[i+1] >= caselessFrom[s[i]] {
		i += 3
	}
	return i
}

const (
	ones = 0x0101010101010101
	tops = 0x80 * ones
)

// letters returns the number of letters a to z from i, with fold also A to Z. It compares eight bytes at a time.
func letters(s []byte, i int, fold bool) int {
	from := i
	var both uint64
	if fold {
		both = 0x20 * ones
	}
	for ; len(s)-i >= 8; i += 8 {
		if others := ^bytesBetween(binary.LittleEndian.Uint64(s[i:])|both, 'a', 'z') & tops; others != 0 {
			return i + bits.TrailingZeros64(others)/8 - from
		}
	}
	for ; i < len(s); i++ {
		c := s[i]
		if fold {
			c |= 0x20
		}
		if c < 'a' || c > 'z' {
			break
		}
	}
	return i - from
}

// spaces returns the number of spaces from i.
func spaces(s []byte, i int) int {
	from := i
	for ; len(s)-i >= 8; i += 8 {
		if others := binary.LittleEndian.Uint64(s[i:]) ^ ' '*ones; others != 0 {
			return i + bits.TrailingZeros64(others)/8 - from
		}
	}
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return i - from
}

// nextO200k returns the length of the first piece of s, which is not empty.
func nextO200k(s []byte) int {
	c, n, from := byteClass[s[0]], 1, 0
	if c == wide {
		if c, n = runeClass(s); c&(letter|upper|lower) == letter|upper|lower {
			return matchWord(s, 0) // not empty: s begins with a letter without case
		}
	}
	if c&(newline|letter|number) == 0 { // one character may precede a word
		from = n
	}
	end := from + capitalized(s, from)
	if end == len(s) || s[end] < utf8.RuneSelf { // end of ASCII letters: most words end here
		switch {
		case end == from && c&(upper|lower) == 0: // no word; a mark alone would be a word
			return matchRest(s, c, n, '/')
		case end < len(s) && s[end] == '\'':
			return end + contraction(s[end:])
		}
		return end
	}
	if from > 0 {
		if end := matchWord(s, from); end > from {
			return end
		}
	}
	if c&(upper|lower) != 0 {
		if end := matchWord(s, 0); end > 0 {
			return end
		}
	}
	return matchRest(s, c, n, '/')
}

// capitalized returns the number of bytes from i that are letters A to Z followed by letters a to z. It compares
// eight bytes at once, which covers most words.
func capitalized(s []byte, i int) int {
	if len(s)-i < 8 {
		n := 0
		for i+n < len(s) && byteClass[s[i+n]] == letter|upper {
			n++
		}
		return n + letters(s, i+n, false)
	}
	x := binary.LittleEndian.Uint64(s[i:])
	n := bits.TrailingZeros64(^bytesBetween(x, 'A', 'Z')&tops) / 8
	if n < 8 {
		if n = bits.TrailingZeros64(^bytesBetween(x, 'a', 'z')&tops>>(8*n)<<(8*n)) / 8; n < 8 {
			return n
		}
	}
	for i+n < len(s) && byteClass[s[i+n]] == letter|upper && byteClass[s[i+n-1]] == letter|upper {
		n++
	}
	return n + letters(s, i+n, false)
}

// bytesBetween sets the highest bit of each byte of x that is in an ASCII range; the other bits are undefined.
func bytesBetween(x uint64, from, to byte) uint64 {
	y := x &^ tops
	return (y + (0x80-uint64(from))*ones) &^ (y + (0x7f-uint64(to))*ones) &^ x
}

// matchWord matches the first two alternatives of o200k_base, without their prefix, from i. It returns the end, or i
// for no match.
func matchWord(s []byte, i int) int {
	// [upper]* matches as far as possible, then [lower]+. If no rune is left for lower, upper backtracks to the last
	// rune that is in both classes.
	u, both := i, -1
	bothEnd := 0
	for {
		if end := caseless(s, u); end > u {
			both, bothEnd, u = end-3, end, end
		}
		var c class
		n := 3
		if len(s)-u >= 3 && s[u]>>4 == 0xe { // classAt inlined: most letters without case have three bytes
			c = tables.ClassOf(rune3(s[u:]))
		} else {
			c, n = classAt(s, u)
		}
		if n == 0 || c&upper == 0 {
			break
		}
		if c&lower != 0 {
			both, bothEnd = u, u+n
		}
		u += n
	}
	end := runEnd(s, u, lower)
	switch {
	case end > u:
	case both >= 0:
		end = bothEnd
	case u > i: // second alternative: capitals only
		end = u
	default:
		return i
	}
	return end + contraction(s[end:])
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd in any case at the start of s, or 0.
func contraction(s []byte) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		if s[1] >= 'A' {
			return 2
		}
	}
	if len(s) >= 3 {
		for _, two := range []string{"re", "ve", "ll"} {
			if bytes.EqualFold(s[1:3], []byte(two)) {
				return 3
			}
		}
	}
	return 0
}

// nextCL100k returns the length of the first piece of s, which is not empty.
func nextCL100k(s []byte) int {
	c, from := byteClass[s[0]], 0
	if c&(newline|letter|number|wide) == 0 {
		from = 1
	}
	if n := contraction(s); n > 0 {
		return n
	}
	if n := letters(s, from, true); n > 0 && (from+n == len(s) || s[from+n] < utf8.RuneSelf) {
		return from + n
	}
	n := 1
	if c == wide {
		c, n = runeClass(s)
	}
	switch {
	case c&letter != 0:
		return runEnd(s, 0, letter)
	case c&(newline|number) == 0:
		if end := runEnd(s, n, letter); end > n {
			return end
		}
	}
	return matchRest(s, c, n, '\n')
}

// matchRest matches the alternatives that both encodings share, from numbers on. c and n are the class and length of
// the first rune. After punctuation it also matches \r, \n and the byte also.
func matchRest(s []byte, c class, n int, also byte) int {
	if c == number && len(s) >= 4 { // ASCII digits
		digits := 1
		if byteClass[s[1]] == number {
			digits++
			if byteClass[s[2]] == number {
				return 3
			}
		}
		if s[digits] < utf8.RuneSelf {
			return digits
		}
	}
	if c&number != 0 {
		end := n
		for range 2 {
			c, n := classAt(s, end)
			if c&number == 0 {
				break
			}
			end += n
		}
		return end
	}
	if c&(space|letter) == 0 || s[0] == ' ' {
		from := 0
		if s[0] == ' ' {
			from = 1
		}
		if end := punctuation(s, from); end > from {
			for end < len(s) && (s[end] == '\n' || s[end] == '\r' || s[end] == also) {
				end++
			}
			return end
		}
	}
	if c&space == 0 {
		return n
	}
	return whitespace(s)
}

// punctuation returns the end of the run from i of characters that are neither space, letter nor number.
func punctuation(s []byte, i int) int {
	if len(s)-i >= 8 { // most runs are shorter
		x := binary.LittleEndian.Uint64(s[i:])
		others := (bytesBetween(x|0x20*ones, 'a', 'z') | bytesBetween(x, '0', '9') | bytesBetween(x, 0, ' ') | x) & tops
		i += bits.TrailingZeros64(others) / 8
	}
	for {
		for i < len(s) && byteClass[s[i]] == 0 {
			i++
		}
		if i >= len(s) || s[i] < utf8.RuneSelf {
			return i
		}
		c, n := runeClass(s[i:])
		if c&(space|letter|number) != 0 {
			return i
		}
		i += n
	}
}

// whitespace returns the end of white space at the start of s: after its last newline, or without a newline before
// its last character, which belongs to the next piece.
func whitespace(s []byte) int {
	end, last, lastNewline := 0, 0, -1
	for {
		if n := spaces(s, end); n > 0 {
			end += n
			last = end - 1
		}
		c, n := classAt(s, end)
		if c&space == 0 {
			break
		}
		if c&newline != 0 {
			lastNewline = end
		}
		last = end
		end += n
	}
	switch {
	case lastNewline >= 0:
		return lastNewline + 1
	case end < len(s) && last > 0:
		return last
	}
	return end
}

// lookahead is the number of bytes after a word that may decide where the word ends: a contraction ('re).
const lookahead = 8

// stableEnd returns the offset up to which later text cannot change the pieces. It excludes white space at the end of
// s, which a later newline may extend, and capitals or letters without case, which a later small letter may extend.
func stableEnd(s []byte) int {
	end := len(s) - lookahead
	for _, of := range []class{space, upper} {
		i := len(s)
		for i > 0 {
			r, n := utf8.DecodeLastRune(s[:i])
			if tables.ClassOf(r)&of == 0 {
				break
			}
			i -= n
		}
		end = min(end, i)
	}
	return end
}

// toValidUTF8 replaces each invalid byte by U+FFFD, like a conversion to runes.
func toValidUTF8(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return []byte(string([]rune(string(s))))
}
