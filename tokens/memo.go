package tokens

import (
	"encoding/binary"
	"math/bits"
)

// memo remembers the counts of short pieces, which come again: words, keys, numbers. It is of one vocabulary. A piece
// that falls on another's place takes it.
type memo [1 << memoBits]struct{ low, high uint64 }

const (
	memoBits  = 14
	memoPiece = 15 // the length in bytes up to which pieces are remembered
	memoCount = 56 // the lowest bit of the count
)

// key is a piece, the n bytes that text begins with: its bytes, its length in the topmost four bits, and room for a count in the four
// below. n is from 1 to memoPiece.
func key(text []byte, n int) (low, high uint64) {
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

// next counts the piece of n bytes that text begins with.
func (d *desk) next(text []byte, n int) int {
	if n > memoPiece {
		return d.count(text[:n])
	}
	low, high := key(text, n)
	over, mixed := bits.Mul64(low^bits.RotateLeft64(high, 29), 0x9e3779b97f4a7c15)
	at := &d.words[(over^mixed)>>(64-memoBits)]
	if at.low == low && at.high&^(0xf<<memoCount) == high {
		return int(at.high >> memoCount & 0xf)
	}
	count := d.count(text[:n])
	at.low, at.high = low, high|uint64(count)<<memoCount
	return count
}
