// Package runes counts the runes of a text, cuts a text between runes, and returns the newlines of a text as a bit set
// for callers that visit every line.
//
// Of docs/SPEED.md, the rows "keep: 1 GB" need the vectors that find newlines; the rows with random bytes need those
// that count runes.
package runes

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Count is [utf8.RuneCount]: each invalid byte is one rune. A byte continues a rune exactly if one of the three bytes
// before it begins a valid rune that is long enough, so vectors examine many bytes at once, whatever precedes them.
func Count(p []byte) int {
	n, i := len(p), 0
	for ; haveVectors && i+countBlock+utf8.UTFMax <= len(p); i += countBlock {
		if b := p[i : i+countBlock]; !ascii(b) {
			n -= continued(&b[0])
		}
	}
	if ascii(p[i:]) {
		return n
	}
	for i < len(p) { // utf8.RuneCount copies p if Go 1.26 inlines the call
		_, size := utf8.DecodeRune(p[i:])
		n -= size - 1
		i += size
	}
	return n
}

const (
	countBlock = 128

	tops = 0x8080808080808080
)

// ascii reports whether p is ASCII. It tests 32 bytes at a time.
func ascii(p []byte) bool {
	high := uint64(0)
	for ; len(p) >= 32; p = p[32:] {
		high |= binary.LittleEndian.Uint64(p) | binary.LittleEndian.Uint64(p[8:]) |
			binary.LittleEndian.Uint64(p[16:]) | binary.LittleEndian.Uint64(p[24:])
	}
	for _, c := range p {
		high |= uint64(c)
	}
	return high&tops == 0
}

// Newlines sets bit i%64 of at[i/64] to 1 if p[i] is a newline, else to 0. at must have a word for each 64 bytes of p,
// rounded up. Newlines clears the bits of the last word beyond the end of p.
func Newlines(p []byte, at []uint64) {
	n := 0
	if haveVectors && len(p) >= 64 {
		n = len(p) &^ 63
		newlines(&p[0], n, &at[0])
	}
	for ; n < len(p); n += 64 {
		word := uint64(0)
		for i, c := range p[n:min(n+64, len(p))] {
			if c == '\n' {
				word |= 1 << i
			}
		}
		at[n/64] = word
	}
}

// Complete returns the length of p without an incomplete rune at the end of p. A cut there splits no rune.
func Complete(p []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if utf8.RuneStart(p[len(p)-i]) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return len(p) - i
			}
			break
		}
	}
	return len(p)
}

// Invalid returns the offset of the first byte of p that is not part of UTF-8; −1 if there is none. Unlike [utf8.Valid]
// it skips ASCII eight bytes at a time also after the first other character.
func Invalid(p []byte) int {
	for i := 0; i < len(p); {
		if i+8 <= len(p) {
			beyond := binary.LittleEndian.Uint64(p[i:]) & 0x8080808080808080
			if beyond == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(beyond) / 8
		}
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// TrimStart returns p without the first bytes that continue a rune which started before p: at most three.
func TrimStart(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && len(p) > 0 && !utf8.RuneStart(p[0]); i++ {
		p = p[1:]
	}
	return p
}
