package tables

import (
	"encoding/binary"
	"math/bits"
)

const shortWord = 8 // tokens of up to 8 bytes have keys of 8 bytes, longer ones of 16

// Key returns the first n bytes of text, 1 to 15, as two numbers. The topmost four bits of high are the length; the
// four bits below them are 0.
func Key(text []byte, n int) (low, high uint64) {
	if len(text) >= 16 {
		low, high = binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		if n <= 8 {
			return low << (64 - 8*n) >> (64 - 8*n), uint64(n) << 60
		}
		return low, high<<(128-8*n)>>(128-8*n) | uint64(n)<<60
	}
	for i, c := range text[:n] {
		if i < 8 {
			low |= uint64(c) << (8 * i)
		} else {
			high |= uint64(c) << (8 * (i - 8))
		}
	}
	return low, high | uint64(n)<<60
}

// Hash returns the hash of a [Key].
func Hash(low, high uint64) uint64 {
	over, mixed := bits.Mul64(low^0x9e3779b97f4a7c15, high^0xd1342543de82ef95)
	return over ^ mixed
}

// IsToken reports whether a [Key] is that of a token; hash is its [Hash]. It returns false for tokens of up to 8
// bytes that end with a NUL, because their keys in the set do not hold the length.
func (v *Vocabulary) IsToken(low, high, hash uint64) bool {
	n := high >> 60
	if n > shortWord {
		at := 2 * v.long.place(hash, len(v.long.keys)/16)
		return le64(v.long.keys, at) == low && le64(v.long.keys, at+1) == high
	}
	return le64(v.short.keys, v.short.place(hash, len(v.short.keys)/8)) == low && low>>(8*n-8) != 0
}

func (w *words) place(hash uint64, places int) uint32 {
	return placeOf(hash, w.pilots[hash&uint64(len(w.pilots)-1)], places)
}

func placeOf(hash uint64, pilot byte, places int) uint32 {
	over, _ := bits.Mul64(hash*(0xd1342543de82ef95+uint64(pilot)*0x3c6ef372fe94f82a), uint64(places))
	return uint32(over)
}
