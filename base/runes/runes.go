// Package runes counts the runes of a text, cuts a text between runes, and returns the newlines of a text as a bit set
// for callers that visit every line.
//
// The rows "keep: 1 GB" of docs/SPEED.md need the vectors that find newlines, those of random bytes the vectors that
// count runes.
package runes

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Count is [utf8.RuneCount]: each invalid byte is one rune. A byte continues a rune exactly if one of the three bytes
// before it begins a valid rune that is long enough, so many bytes are examined at once, whatever stands before them.
func Count(p []byte) int {
	n, i := len(p), 0
	for ; i+countBlock+utf8.UTFMax <= len(p); i += countBlock {
		b := p[i:][: countBlock+utf8.UTFMax : countBlock+utf8.UTFMax]
		high := uint64(0)
		for at := 0; at < countBlock; at += 32 {
			high |= word(b[at:]) | word(b[at+8:]) | word(b[at+16:]) | word(b[at+24:])
		}
		switch {
		case high&tops == 0:
		case haveVectors:
			n -= continuedBlock(&b[0])
		default:
			for at := 0; at < countBlock; at += 8 {
				n -= continued(b[at:])
			}
		}
	}
	for ; i < len(p); i++ {
		if p[i] >= utf8.RuneSelf {
			_, size := utf8.DecodeRune(p[i:])
			n -= size - 1
		}
	}
	return n
}

const (
	countBlock = 128

	ones = 0x0101010101010101
	tops = 0x80 * ones
)

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// continued returns how many bytes follow the first bytes of the valid runes that begin in b[:8]. Each expression has
// the answer for a byte in that byte's top bit: x<<2 is its bit 5.
func continued(b []byte) int {
	x, y := word(b), word(b[1:])
	leads := x & (x << 1) & y &^ (y << 1) & tops // 11xxxxxx before 10xxxxxx
	if leads == 0 {
		return 0
	}
	low := x & (0x1f * ones)
	is := func(c uint64) uint64 { return tops - (low ^ c*ones) } // the low five bits of x are c
	n := bits.OnesCount64(leads &^ (x << 2) &^ (is(0) | is(1)))
	if leads &= x << 2; leads == 0 {
		return n
	}
	z, v := word(b[2:]), word(b[3:])
	leads &= z &^ (z << 1)
	three := leads &^ (x << 3) &^ (is(0)&^(y<<2) | is(0x0d)&(y<<2)) // longer than needed, a surrogate
	four := leads & (x << 3) & v &^ (v << 1) &^ (x << 4)
	narrow := y<<2 | y<<3 // y is 0x90 or more
	// longer than needed, over U+10FFFF
	four &^= is(0x10)&^narrow | is(0x14)&narrow | is(0x15) | is(0x16) | is(0x17)
	return n + 2*bits.OnesCount64(three) + 3*bits.OnesCount64(four)
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

// Invalid returns the offset of the first byte of p that is not part of UTF-8; −1 if there is none.
func Invalid(p []byte) int {
	if utf8.Valid(p) {
		return -1
	}
	for i := 0; ; {
		r, size := utf8.DecodeRune(p[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// TrimStart returns p without the first bytes that continue a rune which started before p: at most three.
func TrimStart(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && len(p) > 0 && !utf8.RuneStart(p[0]); i++ {
		p = p[1:]
	}
	return p
}
