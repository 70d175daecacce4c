// Package runes counts the runes and the newlines of a text, both in one look at it: at the speed of memory where there are vectors.
//
// It also says where the newlines stand, as bits, to who visits all lines. Where lines and runes are in what is kept, the index of an observation
// says.
package runes

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Count is [utf8.RuneCount]: each invalid byte is one rune.
func Count(p []byte) int {
	n, _ := WithLines(p)
	return n
}

// WithLines is [Count], and how many newlines are in p.
func WithLines(p []byte) (runes, newlines int) {
	follow, plain := 0, false
	if n := len(p) &^ 31; haveVectors && n > 0 {
		var high int
		newlines, follow, high = count(&p[0], n)
		lines, more, rest := portable(p[n:])
		newlines, follow, plain = newlines+lines, follow+more, high == 0 && rest
	} else {
		newlines, follow, plain = portable(p)
	}
	if plain || utf8.Valid(p) {
		return len(p) - follow, newlines
	}
	// In Go 1.26 utf8.RuneCount, inlined, copies p.
	for len(p) > 0 {
		_, size := utf8.DecodeRune(p)
		p = p[size:]
		runes++
	}
	return runes, newlines
}

// Newlines sets, of each bit of at, whether the byte of p with its number is a newline: bit i%64 of at[i/64]. at has a word for each 64
// bytes of p, the last maybe for fewer, and of that word the bits behind p's end are 0.
func Newlines(p []byte, at []uint64) {
	n := 0
	if n = len(p) &^ 63; haveVectors && n > 0 {
		newlines(&p[0], n, &at[0])
	} else {
		n = 0
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

// portable counts newlines, and the bytes that would go on a rune (10xxxxxx); plain says that all of p is ASCII.
func portable(p []byte) (newlines, follow int, plain bool) {
	newlines = bytes.Count(p, []byte{'\n'})
	const low = 0x0101010101010101
	high := uint64(0)
	for ; len(p) >= 8; p = p[8:] {
		w := binary.LittleEndian.Uint64(p)
		high |= w
		follow += bits.OnesCount64(w >> 7 &^ (w >> 6) & low)
	}
	for _, c := range p {
		high |= uint64(c)
		if !utf8.RuneStart(c) {
			follow++
		}
	}
	return newlines, follow, high&(low<<7) == 0
}

// Complete is how much of p is left without a char that its end cuts.
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
