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

// longMemo remembers the counts of longer pieces: indentation, rulers, words of scripts of two and three bytes a letter.
type longMemo [1 << longBits]struct {
	text  [longPiece]byte
	n     uint8 // of text; 0: none
	count uint8
}

const (
	longBits  = 12
	longPiece = 62 // with the two numbers a line of the cache
)

// slot is where a piece is remembered, of more than memoPiece bytes.
func slot(piece []byte) uint64 {
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

// next counts the piece of n bytes that text begins with.
func (d *desk) next(text []byte, n int) int {
	if n > memoPiece {
		return d.long(text[:n])
	}
	low, high := key(text, n)
	at := &d.words[mix(low^bits.RotateLeft64(high, 29))>>(64-memoBits)]
	if at.low == low && at.high&^(0xf<<memoCount) == high {
		return int(at.high >> memoCount & 0xf)
	}
	count := d.count(text[:n])
	at.low, at.high = low, high|uint64(count)<<memoCount
	return count
}

// long is next of a piece of more than memoPiece bytes.
func (d *desk) long(piece []byte) int {
	if len(piece) > longPiece {
		return d.count(piece)
	}
	at := &d.phrases[slot(piece)]
	if int(at.n) == len(piece) && string(at.text[:at.n]) == string(piece) {
		return int(at.count)
	}
	count := d.count(piece)
	copy(at.text[:], piece)
	at.n, at.count = uint8(len(piece)), uint8(count)
	return count
}
