// Package runes counts the runes and the newlines of a text, and finds newlines as bits for callers that visit every
// line.
//
// It does not decode or repair text. The rows "keep: 1 GB" of docs/SPEED.md need the vectors that find newlines.
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

// WithLines returns [Count] and the number of newlines in p.
func WithLines(p []byte) (runes, newlines int) {
	newlines = bytes.Count(p, []byte{'\n'})
	if ascii(p) {
		return len(p), newlines
	}
	if utf8.Valid(p) {
		return len(p) - continuations(p), newlines
	}
	// In Go 1.26 utf8.RuneCount, inlined, copies p.
	for len(p) > 0 {
		_, size := utf8.DecodeRune(p)
		p = p[size:]
		runes++
	}
	return runes, newlines
}

const (
	ones = 0x0101010101010101
	tops = 0x80 * ones
)

// ascii reports whether all of p is ASCII.
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

// continuations counts the bytes of p that continue a rune (10xxxxxx).
func continuations(p []byte) (n int) {
	for ; len(p) >= 8; p = p[8:] {
		w := binary.LittleEndian.Uint64(p)
		n += bits.OnesCount64(w >> 7 &^ (w >> 6) & ones)
	}
	for _, c := range p {
		if !utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// Newlines sets bit i%64 of at[i/64] to whether p[i] is a newline, for each byte of p. at has a word for each 64 bytes
// of p or part of them; the bits of its last word behind p's end become 0.
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

// Complete returns the length of p without the incomplete rune at its end, if there is one. It is a cut at which no
// rune is split.
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

// TrimStart returns p without the bytes at its start that continue a rune which began before p: at most three.
func TrimStart(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && len(p) > 0 && !utf8.RuneStart(p[0]); i++ {
		p = p[1:]
	}
	return p
}
