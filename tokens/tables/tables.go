// Package tables holds the vocabularies and the classes of runes as package
// tokens reads them: prebuilt, embedded, read in place.
//
// Nothing is unpacked: a table costs no time at start and no heap, and the
// operating system loads the pages that are read. It counts nothing (package tokens does).
package tables

import (
	_ "embed" // the tables
	"encoding/binary"
	"math/bits"
	"sync"
)

//go:generate go run generate.go

// The files are written by generate.go from the public rank files and from package unicode.
var (
	//go:embed o200k_base.table
	o200k string
	//go:embed cl100k_base.table
	cl100k string
	//go:embed classes.table
	classes string
)

// The vocabularies. The first byte that is read of one maps megabytes of it, so that none is before it is asked for.
var (
	O200k  = sync.OnceValue(func() *Vocabulary { return open(o200k) })
	CL100k = sync.OnceValue(func() *Vocabulary { return open(cl100k) })
)

// Vocabulary maps a token's bytes to its rank. Its form, all numbers little-endian:
//
//	uint32                 how many slots there are, a power of 2
//	uint32                 the longest token's length in bytes
//	65536 × uint32         the ranks of two bytes, by the first and the second; all ones: no token
//	slots × uint32         0, or 10 bits of the hash and 22 bits of a place among the tokens
//	tokens                 before each token's bytes: 24 bits of rank, 8 bits of length
//
// A token stands in the first free slot from its hash on.
type Vocabulary struct {
	pairs, slots, tokens string
	mask, longest        uint32
}

const (
	headSize  = 8 // of a table
	pairsSize = 4 << 16
	slotSize  = 4
	tokenHead = 4
	placeBits = 22
	rankBits  = 24
)

// NoRank is the rank of what is no token.
const NoRank = ^uint32(0)

func open(table string) *Vocabulary {
	slots := le32(table, 0)
	pairs := table[headSize:]
	rest := pairs[pairsSize:]
	return &Vocabulary{pairs[:pairsSize], rest[:slotSize*slots], rest[slotSize*slots:], slots - 1, le32(table, 4)}
}

// Pair is the rank of a token of two bytes, or [NoRank].
func (v *Vocabulary) Pair(a, b byte) uint32 { return le32(v.pairs, 4*(uint32(a)<<8|uint32(b))) }

// Rank is the rank of a token, or [NoRank].
func (v *Vocabulary) Rank(token []byte) uint32 {
	if uint64(len(token)) > uint64(v.longest) {
		return NoRank
	}
	h := hash(token)
	for i := uint32(h) & v.mask; ; i = (i + 1) & v.mask {
		slot := le32(v.slots, slotSize*i)
		if slot == 0 {
			return NoRank
		}
		if slot>>placeBits != uint32(h>>(32+placeBits)) {
			continue
		}
		at := slot & (1<<placeBits - 1)
		head := le32(v.tokens, at-tokenHead)
		if n := head >> rankBits; int(n) == len(token) && v.tokens[at:at+n] == string(token) {
			return head & (1<<rankBits - 1)
		}
	}
}

func le32(s string, i uint32) uint32 {
	s = s[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// hash is fixed: the tables are built with it. Who knows it can aim at the fullest slots, and they hold little.
func hash(b []byte) uint64 {
	h := uint64(len(b)) * 0x9e3779b97f4a7c15
	for ; len(b) > 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	n := len(b)
	switch {
	case n >= 4:
		return mix(h ^ (uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32))
	case n > 0:
		return mix(h ^ (uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16))
	}
	return mix(h)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0xd6e8feb86659fd93)
	return hi ^ lo
}
