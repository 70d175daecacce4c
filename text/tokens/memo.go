package tokens

import (
	"encoding/binary"
	"math/bits"
)

// memo caches the token counts of short pieces, which recur: words, keys, numbers. A memo belongs to one vocabulary.
// Each slot holds two entries, the last used first, so that two frequent pieces do not evict each other.
type memo [1 << memoBits][2]memoEntry

// memoEntry is the key of a piece ([keyOf]) and, in bits memoCount to memoCount+3 of high, its token count.
type memoEntry struct{ low, high uint64 }

// matches reports whether the entry has the given key.
func (k *memoEntry) matches(low, high uint64) bool {
	return k.low == low && k.high&^(0xf<<memoCount) == high
}

func (k *memoEntry) count() int { return int(k.high >> memoCount & 0xf) }

const (
	memoBits  = 13
	memoPiece = 15 // maximum length of a piece in a memo, in bytes
	memoCount = 56 // index of the lowest bit of the count in memoEntry.high
)

// keyOf returns the first n bytes of text, 1 to 15, as two numbers. The topmost four bits of high are the length; the
// four bits below them are 0.
func keyOf(text []byte, n int) (low, high uint64) {
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

// hashOf returns the hash of a key.
func hashOf(low, high uint64) uint64 {
	over, mixed := bits.Mul64(low^0x9e3779b97f4a7c15, high^0xd1342543de82ef95)
	return over ^ mixed
}

func mix(x uint64) uint64 {
	over, mixed := bits.Mul64(x, 0x9e3779b97f4a7c15)
	return over ^ mixed
}
