package tokens

import (
	"encoding/binary"
	"math/bits"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// memo remembers the counts of short pieces, which come again: words, keys, numbers. It is of one vocabulary. Each place has room
// for two, the one asked for last first, so that two that come often do not take it from each other.
type memo [1 << memoBits][2]known

// known is a piece, by its key, and its count.
type known struct{ low, high uint64 }

// is says that the piece is the one with a key.
func (k *known) is(low, high uint64) bool { return k.low == low && k.high&^(0xf<<memoCount) == high }

func (k *known) count() int { return int(k.high >> memoCount & 0xf) }

const (
	memoBits  = 13
	memoPiece = 15 // the length in bytes up to which pieces are remembered
	memoCount = 56 // the lowest bit of the count
)

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

// next counts the piece of n bytes that begins at a place of the text, or leaves it to [desk.settle].
func (d *desk) next(text []byte, from, n int) int {
	if n > memoPiece {
		return d.long(text[from : from+n])
	}
	low, high := tables.Key(text[from:], n)
	hash := tables.Hash(low, high)
	at := &d.words[hash>>(64-memoBits)]
	if at[0].is(low, high) {
		return at[0].count()
	}
	if at[1].is(low, high) {
		at[0], at[1] = at[1], at[0]
		return at[0].count()
	}
	if n <= tables.FewMax {
		count := d.Few(low, n)
		at[0], at[1] = known{low, high | uint64(count)<<memoCount}, at[0]
		return count
	}
	d.missed[d.misses&(len(d.missed)-1)] = missed{low, high, hash, from, false}
	if d.misses++; d.misses < len(d.missed) {
		return 0
	}
	return d.settle(text)
}

// missed is a short piece of a text that is not remembered.
type missed struct {
	low, high, hash uint64
	from            int
	token           bool
}

// settle counts the pieces left. It asks of all whether they are tokens before it counts those that are not: what is slow in
// asking is memory that is not at hand, and many waits for it take as long as one.
func (d *desk) settle(text []byte) (n int) {
	left := d.missed[:d.misses]
	d.misses = 0
	for i := range left {
		m := &left[i]
		m.token = d.IsToken(m.low, m.high, m.hash)
	}
	for i := range left {
		m := &left[i]
		at := &d.words[m.hash>>(64-memoBits)]
		count := 1
		if !m.token {
			if at[0].is(m.low, m.high) { // it was left twice
				n += at[0].count()
				continue
			}
			count = d.count(text[m.from : m.from+int(m.high>>60)])
		}
		at[0], at[1] = known{m.low, m.high | uint64(count)<<memoCount}, at[0]
		n += count
	}
	return n
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
