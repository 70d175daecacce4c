// Package tables holds the vocabularies and the rune classes for package tokens: prebuilt, embedded and read in place.
//
// Nothing is unpacked: a table takes no time at startup and no heap, and the operating system loads only the pages that
// are read.
//
// A rank is the number of a token in its vocabulary; lower ranks merge first. A piece is a part of a text that is
// merged by itself.
package tables

import (
	_ "embed" // the tables
	"math/bits"
	"sync"
)

//go:generate go test -run ^TestTablesAreGenerated$ -update .

// build_test.go makes these files from the public rank files and from package unicode.
var (
	//go:embed o200k_base.table
	o200k string
	//go:embed cl100k_base.table
	cl100k string
	//go:embed classes.table
	classes string
)

// The vocabularies are opened on first use: reading the first byte of a table maps megabytes.
var (
	O200k  = sync.OnceValue(func() *Vocabulary { return open(o200k) })
	CL100k = sync.OnceValue(func() *Vocabulary { return open(cl100k) })
)

// Vocabulary is the trie of all tokens' bytes, with the two parts from which each token was merged. Its format, all
// numbers little-endian:
//
//	uint64                 the length in bytes of the nodes that follow
//	slots × 6 bytes        the nodes of the trie: from the lowest bit on, 8 bits with the byte that leads to the
//	                       node, 1 bit that is always set, 4 bits with the end of a number, 19 bits with the node's
//	                       base, and 16 bits with the rest of the number: 1 + the rank of the token that ends at
//	                       the node, or 0. An empty slot is 0.
//	tokens × uint64        one record per token, by rank: 18 bits with the rank of the left part, 18 bits with
//	                       the rank of the right part, 7 bits with the length minus one, 21 bits with the slot. The
//	                       parts of a one-byte token are the token itself.
//
// The child of a node for a byte is in slot (base of the node) xor (byte), if that slot holds the byte. The base of
// the root is 0. All nodes with children have different bases.
type Vocabulary struct {
	slots, tokens string
}

const (
	headSize = 8 // length of a table's head, in bytes

	slotSize  = 6 // length of a slot, in bytes; the two bytes after the last one can be read
	slotUsed  = 1 << 8
	baseShift = 13
	baseBits  = 32 - baseShift

	rankBits  = 18 // number of bits of a rank in a token's record
	sizeShift = 2 * rankBits
	sizeBits  = 7
	slotShift = sizeShift + sizeBits

	longest = 1 << sizeBits // maximum length of a token, in bytes
	noChild = 256           // the base of a node without children: its block is empty
)

func open(table string) *Vocabulary {
	slots, rest := le64(table, 0), table[headSize:]
	return &Vocabulary{rest[:slots+8-slotSize], rest[slots:]}
}

// Longest returns the rank and the length of the longest token that s begins with; the length is 0 if s is empty.
func (v *Vocabulary) Longest(s []byte) (rank uint32, n int) {
	var base uint32
	for i, c := range s {
		slot := slotAt(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			break
		}
		base = uint32(slot) >> baseShift
		if r := numberOf(slot); r != 0 {
			rank, n = r-1, i+1
		}
	}
	return rank, n
}

// End is the rank and the length of a token at the beginning of a text.
type End uint32

// Rank returns the token's rank.
func (e End) Rank() uint32 { return uint32(e >> 8) }

// Len returns the token's length in bytes.
func (e End) Len() int { return int(e & 0xff) }

// Ends has room for all tokens that a text can begin with.
type Ends [longest]End

// Prefixes writes the tokens that s begins with to into, the shortest first, and returns their number.
func (v *Vocabulary) Prefixes(s []byte, into *Ends) (n int) {
	var base uint32
	for i, c := range s {
		slot := slotAt(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			break
		}
		base = uint32(slot) >> baseShift
		if r := numberOf(slot); r != 0 {
			into[n%longest] = End((r-1)<<8 | uint32(i+1))
			n++
		}
	}
	return n
}

// MergeMax is the maximum length of Merge's input, in bytes.
const MergeMax = 1 << mergeBits

const mergeBits = 4

// Merge returns the number of tokens in at most MergeMax bytes. It joins the neighbours of lowest rank, leftmost
// first, until none can be joined. For short inputs of many tokens it is faster than searching for the longest
// tokens.
func (v *Vocabulary) Merge(piece []byte) int {
	const none = ^uint32(0)
	// by the offset at which a part begins: the base of its node; the rank of the part joined with the next one,
	// combined with the offset; and the base of the joined node
	var base, joined, both [MergeMax]uint32
	n := min(len(piece), MergeMax)
	begins := uint32(2)<<n - 1 // a bit for each offset at which a part begins, and one for the end
	after := func(i int) int { return bits.TrailingZeros32(begins >> (i + 1) << (i + 1)) }
	join := func(i int) {
		joined[i] = none
		if next := after(i); next < n {
			var rank uint32
			if rank, both[i] = v.joinedFrom(base[i], piece[next:after(next)]); rank != none {
				joined[i] = rank<<mergeBits | uint32(i)
			}
		}
	}
	for i, c := range piece[:n] {
		base[i] = uint32(slotAt(v.slots, uint32(c))) >> baseShift
		join(i)
	}
	for {
		least := none
		for _, r := range joined[:n] {
			least = min(least, r)
		}
		if least == none {
			return bits.OnesCount32(begins) - 1
		}
		i := int(least % MergeMax)
		base[i] = both[i]
		taken := after(i)
		joined[taken], begins = none, begins&^(1<<taken)
		join(i)
		if i > 0 {
			join(bits.Len32(begins<<(32-i)>>(32-i)) - 1)
		}
	}
}

// joinedFrom returns the rank and the base of the token that consists of a node's bytes (the node given by its base)
// followed by after; the rank is the highest uint32 if there is no such token.
func (v *Vocabulary) joinedFrom(base uint32, after []byte) (rank, both uint32) {
	var slot uint64
	for _, c := range after {
		slot = slotAt(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			return ^uint32(0), 0
		}
		base = uint32(slot) >> baseShift
	}
	return numberOf(slot) - 1, base
}

// IsBoundary reports whether two adjacent tokens stay apart: whether merging the bytes of both from the beginning
// results in these two tokens. after is the text that starts with the second token.
//
// Ranks rise during the merges of a token (build_test.go checks this), so the part of a token at the boundary exists
// until a merge of a higher rank consumes it. IsBoundary undoes the merges on both sides, the latest first, and looks
// at the two parts that meet at the boundary each time. The tokens do not stay apart if those parts would be joined
// before the merge that consumed one of them: by rank, and among equal ranks from the left.
func (v *Vocabulary) IsBoundary(left, right uint32, after []byte) bool {
	limit := ^uint32(0)
	a, b := le64(v.tokens, left), le64(v.tokens, right)
	for {
		if rank := v.joined(a, b, after); rank < limit {
			return false
		}
		if left > right {
			limit = left
			if left = uint32(a>>rankBits) & (1<<rankBits - 1); left == limit {
				return true
			}
			a = le64(v.tokens, left)
		} else {
			limit = right + 1
			if right = uint32(b) & (1<<rankBits - 1); right+1 == limit {
				return true
			}
			b = le64(v.tokens, right)
		}
	}
}

// joined returns the rank of the token that two adjacent tokens form, given by their records; else the highest
// uint32.
func (v *Vocabulary) joined(a, b uint64, after []byte) uint32 {
	size := b>>sizeShift&(1<<sizeBits-1) + 1
	if size+a>>sizeShift&(1<<sizeBits-1) >= longest {
		return ^uint32(0)
	}
	slot := slotAt(v.slots, uint32(a>>slotShift))
	for _, c := range after[:size] {
		slot = slotAt(v.slots, uint32(slot)>>baseShift^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			return ^uint32(0)
		}
	}
	return numberOf(slot) - 1
}

// slotAt returns the i-th slot of s; the upper bits belong to the next one.
func slotAt(s string, i uint32) uint64 { return load(s[slotSize*uint64(i):]) }

// numberOf returns 1 + the rank of the token that ends at a slot, or 0.
func numberOf(slot uint64) uint32 { return uint32(slot>>9)&0xf | uint32(slot>>28)&0xffff0 }

// le64 returns the i-th uint64 of s.
func le64(s string, i uint32) uint64 { return load(s[8*uint64(i):]) }

func load(s string) uint64 {
	s = s[:8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
