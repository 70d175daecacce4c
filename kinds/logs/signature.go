package logs

import (
	"encoding/binary"
	"math/bits"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// signature hashes a line so that lines which differ only in words with digits have the same hash. It reads the text
// between such words eight bytes at a time: each line of a log is hashed.
func signature(line []byte) uint64 {
	h, from := uint64(1), 0
	for {
		digit := nextDigit(line, from)
		if digit == len(line) {
			return mixed(h, line[from:])
		}
		word := digit
		for word > from && digest.IsWord[line[word-1]] {
			word--
		}
		h = mixed(h, line[from:word]) + 1
		for from = digit; from < len(line) && digest.IsWord[line[from]]; from++ {
		}
	}
}

// nextDigit returns the place of the first digit at or after i, or the length of the line.
func nextDigit(line []byte, i int) int {
	const each, low, tops = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f, 0x8080808080808080
	for ; i+8 <= len(line); i += 8 {
		y := binary.LittleEndian.Uint64(line[i:]) ^ '0'*each // a digit becomes 0 to 9
		if digits := ^(y&low + (0x80-10)*each | y) & tops; digits != 0 {
			return i + bits.TrailingZeros64(digits)/8
		}
	}
	for i < len(line) && line[i]-'0' > 9 {
		i++
	}
	return i
}

// mixed adds a text and its length to a hash.
func mixed(h uint64, text []byte) uint64 {
	const prime = 0x9E3779B97F4A7C15
	h ^= uint64(len(text)) << 32
	i := 0
	for ; i+8 <= len(text); i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(text[i:])) * prime
		h ^= h >> 31
	}
	rest := uint64(0)
	if i > 0 {
		rest = binary.LittleEndian.Uint64(text[len(text)-8:])
	} else {
		for _, c := range text {
			rest = rest<<8 | uint64(c)
		}
	}
	h = (h ^ rest) * prime
	return h ^ h>>31
}
