// Package tables holds the vocabularies and the classes of runes as package
// tokens reads them: prebuilt, embedded, read in place.
//
// Nothing is unpacked: a table costs no time at start and no heap, and the
// operating system loads the pages that are read. It counts nothing (package tokens does).
package tables

import (
	_ "embed" // the tables
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

// Vocabulary is the tree of the tokens' bytes, and what each token was merged from. Its form, all numbers little-endian:
//
//	6 × uint32             the length in bytes of each part that follows
//	8 bytes                nothing
//	slots × uint64         the nodes of the tree: from the lowest bit on, 8 bits of the byte that leads to the node, 1 bit
//	                       that is set, 23 bits of the node's base, and 32 bits of the rank of the token that ends
//	                       here and one, or 0. An empty slot is 0.
//	tokens × uint64        by rank: 18 bits of the rank of the left part, 18 bits of that of the right part, 7 bits of the
//	                       length less one, 21 bits of the slot. One byte is its own parts.
//	pilots, keys × uint64  the set of the tokens of up to 8 bytes that do not end with a NUL, see words: as many pilots
//	                       as a power of two, and a key's bytes
//	pilots, keys × 2       the set of those of 9 to 15 bytes, their keys as of [Key]
//
// The child of a node by a byte stands in the slot of the node's base xor the byte, if that slot holds the byte. The
// root's base is 0. All bases differ but those of nodes without children.
type Vocabulary struct {
	slots, tokens string
	short, long   words
}

const (
	headSize = 32 // of a table

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
	var parts [6]string
	rest := table[headSize:]
	for i := range parts {
		size := le32(table, 4*uint32(i))
		parts[i], rest = rest[:size], rest[size:]
	}
	return &Vocabulary{parts[0], parts[1], words{parts[2], parts[3]}, words{parts[4], parts[5]}}
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

// FewMax is the longest piece in bytes that Few takes.
const FewMax = 4

// Few is Merge of a piece of 1 to FewMax bytes, by its [Key]: there are so few ways to join so few that it needs no steps. Joining any two
// of three leaves two, or all are a token. Of four it is told by which two are joined first, and whether what is left can be joined once.
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

// child is the node by a byte, the lowest of c, below a base; an empty slot where there is none.
func (v *Vocabulary) child(base uint32, c uint64) uint64 {
	slot := le64(v.slots, base^uint32(c&0xff))
	if slot&(slotUsed|0xff) != slotUsed|c&0xff {
		return noChild << baseShift
	}
	return slot
}

func baseOf(slot uint64) uint32 { return uint32(slot) >> baseShift }

// ends is 1 where a token ends at a node, else 0.
func ends(slot uint64) int { return int((slot>>rankShift + 1<<32 - 1) >> 32) }

// joins is the rank of the token that ends at a node; the highest number where there is none.
func joins(slot uint64) uint32 { return uint32(slot>>rankShift) - 1 }

// MergeMax is the longest piece in bytes that Merge takes.
const MergeMax = 1 << mergeBits

const mergeBits = 4

// Merge is how many tokens a piece of at most MergeMax bytes is: its bytes, of which the neighbours of lowest rank are
// joined, leftmost first, until none can be. It is faster than laying tokens where a piece is short and of many tokens.
func (v *Vocabulary) Merge(piece []byte) int {
	const none = ^uint32(0)
	var base, joined, both [MergeMax]uint32 // of the part that begins at a byte: its node's base; joined with the next, its rank and that byte, and its node's base
	n := min(len(piece), MergeMax)
	begins := uint32(2)<<n - 1 // a bit for each byte that begins a part, and one for the end
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

// joinedFrom is the rank of the token of a node's bytes, by its base, and what comes after them, and that node's base;
// the highest number where there is none.
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
