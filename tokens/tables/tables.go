// Package tables holds the vocabularies and the classes of runes as package
// tokens reads them: prebuilt, embedded, read in place.
//
// Nothing is unpacked: a table costs no time at start and no heap, and the
// operating system loads the pages that are read. It counts nothing (package tokens does).
package tables

import (
	_ "embed" // the tables
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

// Vocabulary is the tree of the tokens' bytes, and what each token was merged from. Its form, all numbers little-endian:
//
//	uint32                 how many slots there are
//	uint32                 how many tokens there are
//	slots × uint64         the nodes of the tree: from the lowest bit on, 8 bits of the byte that leads to the node, 1 bit
//	                       that is set, 23 bits of the node's base, and 32 bits of the rank of the token that ends
//	                       here and one, or 0. An empty slot is 0.
//	tokens × uint64        by rank: 18 bits of the rank of the left part, 18 bits of that of the right part, 7 bits of the
//	                       length less one, 21 bits of the slot. One byte is its own parts.
//
// The child of a node by a byte stands in the slot of the node's base xor the byte, if that slot holds the byte. The
// root's base is 0. All bases differ but those of nodes without children.
type Vocabulary struct {
	slots, tokens string
}

const (
	headSize = 8 // of a table

	slotUsed  = 1 << 8
	baseShift = 9
	baseBits  = 23
	rankShift = 32

	rankBits  = 18 // of a token's record
	sizeShift = 2 * rankBits
	sizeBits  = 7
	slotShift = sizeShift + sizeBits
	slotBits  = 64 - slotShift

	longest = 1 << sizeBits // token, in bytes
	noChild = 256           // the base of a node without children: its block is empty
)

func open(table string) *Vocabulary {
	rest := table[headSize:]
	slots := 8 * le32(table, 0)
	return &Vocabulary{rest[:slots], rest[slots:]}
}

// Longest is the longest token that s begins with, its rank and its length; length 0 where s is empty.
func (v *Vocabulary) Longest(s []byte) (rank uint32, n int) {
	var base uint32
	for i, c := range s {
		slot := le64(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			break
		}
		base = uint32(slot) >> baseShift
		if r := uint32(slot >> rankShift); r != 0 {
			rank, n = r-1, i+1
		}
	}
	return rank, n
}

// End is where a token ends that a text begins with.
type End uint32

// Rank is the token's rank.
func (e End) Rank() uint32 { return uint32(e >> 8) }

// Len is the token's length in bytes.
func (e End) Len() int { return int(e & 0xff) }

// Ends has room for all tokens that a text can begin with.
type Ends [longest]End

// Prefixes writes the tokens that s begins with, the shortest first, and returns how many there are.
func (v *Vocabulary) Prefixes(s []byte, into *Ends) (n int) {
	var base uint32
	for i, c := range s {
		slot := le64(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			break
		}
		base = uint32(slot) >> baseShift
		if r := uint32(slot >> rankShift); r != 0 {
			into[n%longest] = End((r-1)<<8 | uint32(i+1))
			n++
		}
	}
	return n
}

// Apart says whether two neighbouring tokens stay two: whether the bytes of both, merged from the beginning, become
// just these. After is the text from the second token on.
//
// Merges within a token rise in rank (Build has proved it), so that its outer part stands for as long as no merge
// of a higher rank comes. The parts that meet at the border are followed back, the latest merge first: the two never
// stay apart where joining the parts of any moment comes before the merge that ended it, in rank, of equals from the left.
func (v *Vocabulary) Apart(left, right uint32, after []byte) bool {
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

// joined is the rank of the token that two tokens make, by their records; else the highest number.
func (v *Vocabulary) joined(a, b uint64, after []byte) uint32 {
	size := b>>sizeShift&(1<<sizeBits-1) + 1
	if size+a>>sizeShift&(1<<sizeBits-1) >= longest {
		return ^uint32(0)
	}
	slot := le64(v.slots, uint32(a>>slotShift))
	for _, c := range after[:size] {
		slot = le64(v.slots, uint32(slot)>>baseShift^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			return ^uint32(0)
		}
	}
	return uint32(slot>>rankShift) - 1
}

func le32(s string, i uint32) uint32 {
	s = s[i : i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// le64 is the number at a place.
func le64(s string, i uint32) uint64 {
	s = s[8*uint64(i):]
	s = s[:8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
