package tokens

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// The two encodings cut a text into pieces before they merge bytes. Their
// patterns, as published with tiktoken:
//
//	o200k_base:
//	  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	 |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	cl100k_base:
//	  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// They are matched by hand here: no regexp engine is linear on them.

type class = tables.Class

const (
	upper   = tables.Upper
	lower   = tables.Lower
	letter  = tables.Letter
	number  = tables.Number
	space   = tables.Space
	newline = tables.Newline
	wide    = class(1 << 7) // not ASCII: its class is the rune's
)

// byteClass is a table of its own, as it is at hand without reading the embedded ones.
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

// at decodes the rune at i; size 0 at the end. s is valid UTF-8.
func at(s []byte, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := byteClass[s[i]]; c != wide {
		return c, 1
	}
	return runeClass(s[i:])
}

// runeClass is at, of a rune that is not ASCII.
func runeClass(s []byte) (class, int) {
	switch {
	case s[0] < 0xe0 && len(s) >= 2:
		return tables.ClassOf(rune(s[0]&0x1f)<<6 | rune(s[1]&0x3f)), 2
	case s[0] < 0xf0 && len(s) >= 3:
		return tables.ClassOf(three(s)), 3
	}
	r, n := utf8.DecodeRune(s)
	return tables.ClassOf(r), n
}

// three is a rune of three bytes.
func three(s []byte) rune { return rune(s[0]&0xf)<<12 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f) }

// run is the end of the longest run from i whose runes have any of the classes.
func run(s []byte, i int, of class) int {
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

// caselessFrom is, of a byte, the least one after it with which only letters without case begin, all of three bytes: U+4E00 to U+9FFF
// are ideographs, U+AC00 to U+CFFF syllables of Hangul.
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

// caseless is the end of the run from i of letters that begin with such bytes. s is valid UTF-8.
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

// letters is how many bytes from i are letters a to z; where fold, A to Z too. It looks at eight bytes at a time.
func letters(s []byte, i int, fold bool) int {
	from := i
	var both uint64
	if fold {
		both = 0x20 * ones
	}
	for ; len(s)-i >= 8; i += 8 {
		if others := ^between(binary.LittleEndian.Uint64(s[i:])|both, 'a', 'z') & tops; others != 0 {
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

// blanks is how many bytes from i are spaces.
func blanks(s []byte, i int) int {
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

// nextO200k is the length of the first piece of s, which is not empty.
func nextO200k(s []byte) int {
	c, n, from := byteClass[s[0]], 1, 0
	if c == wide {
		if c, n = runeClass(s); c&(letter|upper|lower) == letter|upper|lower {
			return word(s, 0) // of letters without case, it is never empty
		}
	}
	if c&(newline|letter|number) == 0 { // the one character before a word
		from = n
	}
	end := from + capitalized(s, from)
	if end == len(s) || s[end] < utf8.RuneSelf { // most words end there, if there is one
		switch {
		case end == from && c&(upper|lower) == 0: // there is none; a mark alone is one
			return rest(s, c, n, '/')
		case end < len(s) && s[end] == '\'':
			return end + contraction(s[end:])
		}
		return end
	}
	if from > 0 {
		if end := word(s, from); end > from {
			return end
		}
	}
	if c&(upper|lower) != 0 {
		if end := word(s, 0); end > 0 {
			return end
		}
	}
	return rest(s, c, n, '/')
}

// capitalized is how many bytes from i are letters A to Z, and then letters a to z. It looks at eight bytes at once, which are
// most words.
func capitalized(s []byte, i int) int {
	if len(s)-i < 8 {
		n := 0
		for i+n < len(s) && byteClass[s[i+n]] == letter|upper {
			n++
		}
		return n + letters(s, i+n, false)
	}
	x := binary.LittleEndian.Uint64(s[i:])
	n := bits.TrailingZeros64(^between(x, 'A', 'Z')&tops) / 8
	if n < 8 {
		if n = bits.TrailingZeros64(^between(x, 'a', 'z')&tops>>(8*n)<<(8*n)) / 8; n < 8 {
			return n
		}
	}
	for i+n < len(s) && byteClass[s[i+n]] == letter|upper && byteClass[s[i+n-1]] == letter|upper {
		n++
	}
	return n + letters(s, i+n, false)
}

// between has the highest bit set of each byte of x from one to another, both below 0x80; the other bits are anything.
func between(x uint64, from, to byte) uint64 {
	y := x &^ tops
	return (y + (0x80-uint64(from))*ones) &^ (y + (0x7f-uint64(to))*ones) &^ x
}

// word matches the first two branches without their prefix from i: its end, or i.
func word(s []byte, i int) int {
	// [upper]* as far as it goes, then [lower]+; where nothing is left for lower, upper gives back
	// to the last rune that is both.
	u, both := i, -1
	bothEnd := 0
	for {
		if end := caseless(s, u); end > u {
			both, bothEnd, u = end-3, end, end
		}
		var c class
		n := 3
		if len(s)-u >= 3 && s[u]>>4 == 0xe { // as at does, without a call: most letters without case have three bytes
			c = tables.ClassOf(three(s[u:]))
		} else {
			c, n = at(s, u)
		}
		if n == 0 || c&upper == 0 {
			break
		}
		if c&lower != 0 {
			both, bothEnd = u, u+n
		}
		u += n
	}
	end := run(s, u, lower)
	switch {
	case end > u:
	case both >= 0:
		end = bothEnd
	case u > i: // second branch: capitals alone
		end = u
	default:
		return i
	}
	return end + contraction(s[end:])
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd in any case at the start of s, else 0.
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

// nextCL100k is the length of the first piece of s, which is not empty.
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
		return run(s, 0, letter)
	case c&(newline|number) == 0:
		if end := run(s, n, letter); end > n {
			return end
		}
	}
	return rest(s, c, n, '\n')
}

// rest matches the branches the encodings share, from numbers on. c and n are
// the first rune's class and length; after punctuation may come \r, \n and also.
func rest(s []byte, c class, n int, also byte) int {
	if c == number && len(s) >= 4 { // of ASCII
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
			c, n := at(s, end)
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
		if end := signs(s, from); end > from {
			for end < len(s) && (s[end] == '\n' || s[end] == '\r' || s[end] == also) {
				end++
			}
			return end
		}
	}
	if c&space == 0 {
		return n
	}
	return white(s)
}

// signs is the end of the run from i of what is neither space nor letter nor number.
func signs(s []byte, i int) int {
	if len(s)-i >= 8 { // most runs are shorter
		x := binary.LittleEndian.Uint64(s[i:])
		others := (between(x|0x20*ones, 'a', 'z') | between(x, '0', '9') | between(x, 0, ' ') | x) & tops
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

// white matches white space: to its last newline; else all but the last character, which belongs to what follows.
func white(s []byte) int {
	end, last, lastNewline := 0, 0, -1
	for {
		if n := blanks(s, end); n > 0 {
			end += n
			last = end - 1
		}
		c, n := at(s, end)
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

// lookahead is how many bytes after a word may decide where it ends: a contraction ('re).
const lookahead = 8

// settled is up to where pieces end as they will, whatever text follows: not within white space that may go on, as a
// newline far behind takes all of it, nor within capitals or letters without case that may, as a small letter behind does.
func settled(s []byte) int {
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

// valid replaces invalid UTF-8 by U+FFFD, rune by rune, as a conversion to runes does.
func valid(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	return []byte(string([]rune(string(s))))
}
