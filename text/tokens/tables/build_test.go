package tables

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode"
)

// This file generates the embedded tables. It is part of the tests, because the program only reads the tables:
// `go generate ./tokens/tables` runs TestTablesAreGenerated with -update.

// inOrder returns the tokens of a rank file in order of rank. It returns an error if the ranks are not 0, 1, 2 …
// without gaps.
func inOrder(ranks map[string]int) ([]string, error) {
	tokens := make([]string, len(ranks))
	for t, rank := range ranks {
		if rank < 0 || rank >= len(tokens) || tokens[rank] != "" {
			return nil, fmt.Errorf("ranks are not 0 … %d", len(tokens)-1)
		}
		tokens[rank] = t
	}
	return tokens, nil
}

// buildTable makes the table of a vocabulary from its tokens in order of rank. Equal tokens give equal bytes.
func buildTable(tokens []string) ([]byte, error) {
	if len(tokens) >= 1<<rankBits {
		return nil, fmt.Errorf("%d tokens", len(tokens))
	}
	records, err := recordsOf(tokens)
	if err != nil {
		return nil, err
	}
	g := newGrove(tokens)
	slots := g.place()
	if len(slots) >= 1<<baseBits {
		return nil, fmt.Errorf("%d slots", len(slots))
	}
	table := binary.LittleEndian.AppendUint64(nil, uint64(slotSize*len(slots)))
	for _, s := range slots {
		table = binary.LittleEndian.AppendUint64(table, s)[:len(table)+slotSize]
	}
	for rank, r := range records {
		table = binary.LittleEndian.AppendUint64(table, r|uint64(g.at[g.ends[rank]])<<slotShift)
	}
	return table, nil
}

// recordsOf returns the record of each token, without its slot. It checks the two properties [Vocabulary.IsBoundary]
// relies on: the bytes of every token, merged by themselves, become that token, and the ranks of these merges never
// fall.
func recordsOf(tokens []string) ([]uint64, error) {
	ranks := make(map[string]int, len(tokens))
	for rank, t := range tokens {
		if (len(t) == 1) != (rank < 256) || t == "" || len(t) > longest {
			return nil, fmt.Errorf("token %d has %d bytes", rank, len(t))
		}
		ranks[t] = rank
	}
	records := make([]uint64, len(tokens))
	for rank, t := range tokens {
		left, right := rank, rank
		if len(t) > 1 {
			cut, err := lastMerge(t, ranks)
			if err != nil {
				return nil, fmt.Errorf("token %d, %q: %w", rank, t, err)
			}
			left, right = ranks[t[:cut]], ranks[t[cut:]]
		}
		records[rank] = uint64(left) | uint64(right)<<rankBits | uint64(len(t)-1)<<sizeShift
	}
	return records, nil
}

// lastMerge returns the offset in t at which the last merge joins its two parts.
func lastMerge(t string, ranks map[string]int) (cut int, _ error) {
	starts := make([]int, len(t)+1)
	for i := range starts {
		starts[i] = i
	}
	before := 0
	for len(starts) > 2 {
		least, at := len(ranks), 0
		for i := range len(starts) - 2 {
			if rank, ok := ranks[t[starts[i]:starts[i+2]]]; ok && rank < least {
				least, at = rank, i
			}
		}
		if least == len(ranks) || least < before {
			return 0, fmt.Errorf("its bytes do not merge to it in rising ranks")
		}
		before, cut = least, starts[at+1]
		starts = slices.Delete(starts, at+1, at+2)
	}
	return cut, nil
}

// grove is the trie of the bytes of all tokens. It exists only while slots are assigned to its nodes. Node 0 is the
// root.
type grove struct {
	kids [][]int // the children of each node, in order of their bytes
	byte []byte  // the byte that leads to each node
	rank []int   // the rank of the token that ends at each node, or -1
	ends []int   // the node at which each token ends, by rank
	at   []int   // the slot of each node
	base []uint64
	used []bool // whether each slot is taken
	own  []bool // whether each base is taken: bases differ, so a slot's byte identifies its parent
	from []int  // the block at which a search begins, by the node's number of children
}

func newGrove(tokens []string) *grove {
	g := &grove{kids: [][]int{nil}, byte: []byte{0}, rank: []int{-1}, from: make([]int, 257)}
	for rank, t := range tokens {
		n := 0
		for i := range len(t) {
			n = g.child(n, t[i])
		}
		g.rank[n] = rank
		g.ends = append(g.ends, n)
	}
	g.at = make([]int, len(g.kids))
	g.base = make([]uint64, len(g.kids))
	return g
}

func (g *grove) child(n int, c byte) int {
	i, ok := slices.BinarySearchFunc(g.kids[n], c, func(k int, c byte) int { return cmp.Compare(g.byte[k], c) })
	if !ok {
		g.kids[n] = slices.Insert(g.kids[n], i, len(g.kids))
		g.kids, g.byte, g.rank = append(g.kids, nil), append(g.byte, c), append(g.rank, -1)
	}
	return g.kids[n][i]
}

// place assigns a slot to every node. Nodes with many children come first, because few bases fit them. Among nodes
// with equally many children the first ones come first: their tokens are the most frequent, so their slots are close
// together.
func (g *grove) place() []uint64 {
	g.grow() // the root's children
	g.grow() // the empty block: nodes without children use its base, so every lookup fails
	for c := range 256 {
		g.used[blockOf(noChild)*256+c] = true
	}
	order := make([]int, 0, len(g.kids))
	for n := range g.kids {
		if n > 0 && len(g.kids[n]) > 0 {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(g.kids[b]), len(g.kids[a])) })
	g.take(0, 0)
	for _, n := range order {
		g.take(n, g.search(n))
	}
	slots := make([]uint64, len(g.used))
	for n := range g.kids {
		if len(g.kids[n]) == 0 {
			g.base[n] = noChild
		}
		if n > 0 {
			number := uint64(g.rank[n] + 1)
			slots[g.at[n]] = uint64(g.byte[n]) | slotUsed | number&0xf<<9 | g.base[n]<<baseShift | number>>4<<32
		}
	}
	return slots
}

func blockOf(slot int) int { return slot / 256 }

func (g *grove) grow() {
	g.used = append(g.used, make([]bool, 256)...)
	g.own = append(g.own, make([]bool, 256)...)
}

func (g *grove) take(n, base int) {
	g.base[n], g.own[base] = uint64(base), true
	for _, k := range g.kids[n] {
		g.at[k] = base ^ int(g.byte[k])
		g.used[g.at[k]] = true
	}
}

// search returns a base for a node: the first that fits. It skips blocks in which nodes with as many children failed
// often.
func (g *grove) search(n int) int {
	kids := g.kids[n]
	first := int(g.byte[kids[0]])
	for block, tries := g.from[len(kids)], 0; ; block++ {
		if block*256 == len(g.used) {
			g.grow()
		}
		for slot := block * 256; slot < block*256+256; slot++ {
			if base := slot ^ first; !g.used[slot] && g.fits(kids, base) {
				return base
			}
		}
		if tries++; tries > 16 {
			g.from[len(kids)] = max(g.from[len(kids)], block-8)
		}
	}
}

func (g *grove) fits(kids []int, base int) bool {
	if g.own[base] {
		return false
	}
	for _, k := range kids {
		if g.used[base^int(g.byte[k])] {
			return false
		}
	}
	return true
}

// buildClasses builds the class table from package unicode.
func buildClasses() []byte {
	table := make([]byte, blocks)
	seen := map[[blockSize]byte]int{}
	for i := range blocks {
		var block [blockSize]byte
		for j := range block {
			block[j] = byte(classify(rune(i*blockSize + j)))
		}
		n, ok := seen[block]
		if !ok {
			n = len(seen)
			seen[block] = n
			table = append(table, block[:]...)
		}
		table[i] = byte(n)
	}
	if len(seen) > 256 {
		panic("tables: too many different blocks of runes")
	}
	return table
}

func classify(r rune) Class {
	switch {
	case r == '\r' || r == '\n':
		return Space | Newline
	case unicode.IsSpace(r):
		return Space
	case unicode.Is(unicode.Ll, r):
		return Letter | Lower
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return Letter | Upper
	case unicode.IsLetter(r): // Lm, Lo
		return Letter | Upper | Lower
	case unicode.IsMark(r):
		return Upper | Lower
	case unicode.IsNumber(r):
		return Number
	}
	return 0
}
