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
//	6 × uint32             the length in bytes of each section that follows
//	8 bytes                unused
//	slots × uint64         the nodes of the trie: from the lowest bit on, 8 bits with the byte that leads to the
//	                       node, 1 bit that is always set, 23 bits with the node's base, and 32 bits with 1 + the
//	                       rank of the token that ends at the node, or 0. An empty slot is 0.
//	tokens × uint64        one record per token, by rank: 18 bits with the rank of the left part, 18 bits with
//	                       the rank of the right part, 7 bits with the length minus one, 21 bits with the slot. The
//	                       parts of a one-byte token are the token itself.
//	pilots, keys × uint64  the set of the tokens of up to 8 bytes that do not end with a NUL, see words: the
//	                       pilots, whose number is a power of two, then the bytes of each key
//	pilots, keys × 2       the set of the tokens of 9 to 15 bytes, with keys as returned by [Key]
//
// The child of a node for a byte is in slot (base of the node) xor (byte), if that slot holds the byte. The base of
// the root is 0. All nodes with children have different bases.
type Vocabulary struct {
	slots, tokens string
	short, long   words
}

const (
	headSize = 32 // length of a table's head, in bytes

	slotUsed  = 1 << 8
	baseShift = 9
	rankShift = 32

	rankBits  = 18 // number of bits of a rank in a token's record
	sizeShift = 2 * rankBits
	sizeBits  = 7
	slotShift = sizeShift + sizeBits
	slotBits  = 64 - slotShift

	longest = 1 << sizeBits // maximum length of a token, in bytes
	noChild = 256           // the base of a node without children: its block is empty
)

func open(table string) *Vocabulary {
	var parts [6]string
	rest := table[headSize:]
	for i := range parts {
		size := le32(table, 4*uint32(i))
		parts[i], rest = rest[:size], rest[size:]
	}
	return &Vocabulary{parts[0], parts[1], words{parts[2], parts[3]}, words{parts[4], parts[5]}}
}

// Longest returns the rank and the length of the longest token that s begins with; the length is 0 if s is empty.
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

// FewMax is the maximum length of Few's input, in bytes.
const FewMax = 4

// Few is Merge for n bytes, 1 to FewMax, given as a [Key]. So few bytes can be joined in so few ways that it needs no
// loop. If any two of three bytes are joined, two tokens remain, or one if all three are a token. For four bytes the
// result depends on which two are joined first, and on whether the remaining parts can be joined once more.
func (v *Vocabulary) Few(key uint64, n int) int {
	a, b := v.child(0, key), v.child(0, key>>8)
	ab := v.child(baseOf(a), key>>8)
	switch n {
	case 1:
		return 1
	case 2:
		return 2 - ends(ab)
	}
	bc := v.child(baseOf(b), key>>16)
	abc := v.child(baseOf(ab), key>>16)
	if n == 3 {
		if ends(abc) != 0 {
			return 1
		}
		return 3 - (ends(ab) | ends(bc))
	}
	cd := v.child(baseOf(v.child(0, key>>16)), key>>24)
	bcd := v.child(baseOf(bc), key>>24)
	if ends(v.child(baseOf(abc), key>>24)) != 0 {
		return 1
	}
	left, middle, right := joins(ab), joins(bc), joins(cd)
	switch {
	case min(left, middle, right) == joins(0):
		return 4
	case middle < left && middle <= right:
		return 3 - (ends(abc) | ends(bcd))
	case left <= right:
		return 3 - (ends(abc) | ends(cd))
	}
	return 3 - (ends(bcd) | ends(ab))
}

// child returns the slot of the node that the lowest byte of c leads to from a base, or an empty slot.
func (v *Vocabulary) child(base uint32, c uint64) uint64 {
	slot := le64(v.slots, base^uint32(c&0xff))
	if slot&(slotUsed|0xff) != slotUsed|c&0xff {
		return noChild << baseShift
	}
	return slot
}

func baseOf(slot uint64) uint32 { return uint32(slot) >> baseShift }

// ends returns 1 if a token ends at a node, else 0.
func ends(slot uint64) int { return int((slot>>rankShift + 1<<32 - 1) >> 32) }

// joins returns the rank of the token that ends at a node, or the highest uint32.
func joins(slot uint64) uint32 { return uint32(slot>>rankShift) - 1 }

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
		base[i] = uint32(le64(v.slots, uint32(c))) >> baseShift
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
		slot = le64(v.slots, base^uint32(c))
		if slot&(slotUsed|0xff) != slotUsed|uint64(c) {
			return ^uint32(0), 0
		}
		base = uint32(slot) >> baseShift
	}
	return uint32(slot>>rankShift) - 1, base
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

// le64 returns the i-th uint64 of s.
func le64(s string, i uint32) uint64 {
	s = s[8*uint64(i):]
	s = s[:8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// words is a set of short tokens: a perfect hash table in which each key has exactly one possible slot. A key's slot
// depends on its hash and on a pilot, a byte shared by all keys whose hashes end with the same bits. All pilots
// together fit into the CPU cache, so a lookup costs one cache miss.
type words struct {
	pilots, keys string
}
