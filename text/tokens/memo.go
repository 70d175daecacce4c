package tokens

import (
	"encoding/binary"
	"math/bits"
)

// memo caches the token counts of short pieces, which recur: words, keys, numbers. A memo belongs to one vocabulary.
// Each slot holds two entries, the last used first, so that two frequent pieces do not evict each other.
type memo [1 << memoBits][2]memoEntry

// memoEntry is the key of a piece ([tables.Key]) and, in bits memoCount to memoCount+3 of high, its token count.
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

// longMemo caches the token counts of longer pieces: indentation, rulers, words in scripts of two or three bytes per
// letter.
type longMemo [1 << longBits]struct {
	text  [longPiece]byte
	n     uint8 // number of bytes used in text; 0: the slot is empty
	count uint8
}

const (
	longBits  = 12
	longPiece = 62 // maximum length in bytes; with n and count an entry is one cache line
)

// longMemoSlot returns the slot for a piece of more than memoPiece bytes.
func longMemoSlot(piece []byte) uint64 {
	h := uint64(len(piece))
	for i := 0; i+8 <= len(piece); i += 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(piece[i:]))
	}
	return mix(h^binary.LittleEndian.Uint64(piece[len(piece)-8:])) >> (64 - longBits)
}

func mix(x uint64) uint64 {
	over, mixed := bits.Mul64(x, 0x9e3779b97f4a7c15)
	return over ^ mixed
}
