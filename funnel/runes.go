package funnel

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// runes is utf8.RuneCount without its copy: in Go 1.26 that one, inlined,
// copies p, which made the counting of chars the dearest part of the pass.
// In valid text chars are the bytes that do not continue one, counted eight at a time.
func runes(p []byte) int {
	if !utf8.Valid(p) {
		n := 0
		for len(p) > 0 {
			_, size := utf8.DecodeRune(p)
			p = p[size:]
			n++
		}
		return n
	}
	n := len(p)
	for ; len(p) >= 8; p = p[8:] {
		w := binary.LittleEndian.Uint64(p)
		// A byte that continues a char is 10xxxxxx: bit 7 is set, bit 6 is not.
		n -= bits.OnesCount64(w >> 7 &^ (w >> 6) & 0x0101010101010101)
	}
	for _, b := range p {
		if !utf8.RuneStart(b) {
			n--
		}
	}
	return n
}
