package logs

import (
	"encoding/binary"
	"math/bits"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
)

// signature hashes a line of at most HeadBytes so that lines which differ only in words with digits have the same
// hash. It reads the text between such words eight bytes at a time.
func signature(line []byte) uint64 {
	var words, digits bitmap
	words.of(&digits, line)
	h := uint64(1)
	at := 0
	for {
		digit := digits.next(at)
		if digit >= len(line) {
			return mixed(h, line, at, len(line))
		}
		from, to := words.run(digit)
		h = mixed(h, line, at, from) + 1
		at = to
	}
}

// mixed adds line[from:to] and the end of this range to a hash.
func mixed(h uint64, line []byte, from, to int) uint64 {
	const prime = 0x9E3779B97F4A7C15
	for ; to-from >= 8; from += 8 {
		h = (h ^ binary.LittleEndian.Uint64(line[from:])) * prime
		h ^= h >> 31
	}
	n := to - from
	rest := uint64(0)
	switch {
	case from+8 <= len(line):
		rest = binary.LittleEndian.Uint64(line[from:])
	case len(line) >= 8:
		rest = binary.LittleEndian.Uint64(line[len(line)-8:]) >> (8 * (from + 8 - len(line)))
	default:
		for i, c := range line[from:to] {
			rest |= uint64(c) << (8 * i)
		}
	}
	h = (h ^ rest&(1<<(8*n)-1) ^ uint64(n+1)<<56) * prime // n is at most 7, so the top byte is free
	return h ^ h>>31
}

// bitmap has one bit per byte of a line, and at least one 0 bit after the last byte of the longest line.
type bitmap [digest.HeadBytes/64 + 1]uint64

// of sets the bits of the bytes in words, and the bits of the digits. Both bitmaps must be empty.
func (words *bitmap) of(digits *bitmap, line []byte) {
	n := 0
	if haveVectors {
		if n = len(line) &^ 63; n > 0 {
			wordBits(&line[0], n, &words[0], &digits[0])
		}
		if n < len(line) {
			var rest [64]byte
			copy(rest[:], line[n:])
			wordBits(&rest[0], len(rest), &words[n/64], &digits[n/64])
		}
		return
	}
	words.portable(digits, line)
}

// portable implements of without vector instructions.
func (words *bitmap) portable(digits *bitmap, line []byte) {
	for i, c := range line {
		if digest.IsWord[c] {
			words[i/64] |= 1 << (i % 64)
		}
		if c-'0' <= 9 {
			digits[i/64] |= 1 << (i % 64)
		}
	}
}

// next returns the first set bit at or after i, or 64·len(b) if there is none.
func (b *bitmap) next(i int) int {
	k := i / 64
	for word := b[k] &^ (1<<(i%64) - 1); ; word = b[k] {
		if word != 0 {
			return 64*k + bits.TrailingZeros64(word)
		}
		if k++; k == len(b) {
			return 64 * k
		}
	}
}

// run returns the range of set bits around bit i, which must be set.
func (b *bitmap) run(i int) (from, to int) {
	from = i - bits.LeadingZeros64(^(b[i/64] << (63 - i%64))) + 1
	for from > 0 && from%64 == 0 && b[from/64-1]>>63 == 1 {
		from -= bits.LeadingZeros64(^b[from/64-1])
	}
	to = i + bits.TrailingZeros64(^(b[i/64] >> (i % 64)))
	for to%64 == 0 && b[to/64]&1 == 1 {
		to += bits.TrailingZeros64(^b[to/64])
	}
	return from, to
}
