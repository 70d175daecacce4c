package tokens

import (
	"encoding/binary"
	"math/bits"
)

// memo remembers the counts of short pieces, which come again: words, keys, numbers. It is of one vocabulary. A piece
// that falls on another's place takes it.
type memo [2048]struct{ low, high uint64 }

// memoPiece is the length in bytes up to which pieces are remembered; memoText from which a text is worth a memo (32 KiB).
const (
	memoPiece = 15
	memoText  = 4 << 10
)

// key is a piece of 1 to memoPiece bytes: its bytes, its length in the topmost four bits, and room for a count in the four below.
func key(piece []byte) (low, high uint64) {
	n := len(piece)
	switch {
	case n >= 8:
		low = binary.LittleEndian.Uint64(piece)
		high = binary.LittleEndian.Uint64(piece[n-8:]) >> (8 * (16 - n))
	case n >= 4:
		low = uint64(binary.LittleEndian.Uint32(piece)) | uint64(binary.LittleEndian.Uint32(piece[n-4:]))<<(8*(n-4))
	default:
		low = uint64(piece[0]) | uint64(piece[n/2])<<(8*(n/2)) | uint64(piece[n-1])<<(8*(n-1))
	}
	return low, high | uint64(n)<<60
}

const memoCount = 56 // the lowest bit of the count

// count is v.count.
func (m *memo) count(v vocabulary, piece []byte) int {
	if len(piece) > memoPiece {
		return v.count(piece)
	}
	low, high := key(piece)
	over, mixed := bits.Mul64(low^bits.RotateLeft64(high, 29), 0x9e3779b97f4a7c15)
	at := &m[(over^mixed)%uint64(len(m))]
	if at.low == low && at.high&^(0xf<<memoCount) == high {
		return int(at.high >> memoCount & 0xf)
	}
	n := v.count(piece)
	at.low, at.high = low, high|uint64(n)<<memoCount
	return n
}
