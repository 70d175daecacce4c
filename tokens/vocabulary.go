package tokens

import (
	"sync"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// vocabulary says how many tokens a piece is.
type vocabulary struct {
	*tables.Vocabulary
}

const noRank = tables.NoRank

// Lengths of pieces in bytes: from middlePiece on, merging by a heap costs less than looking for the lowest
// rank each time; from longPiece on, the heap is not on the stack.
const (
	middlePiece = 48
	longPiece   = 256
)

// count is how many tokens one piece is.
func (v vocabulary) count(piece []byte) int {
	if len(piece) == 1 {
		return 1
	}
	if v.Rank(piece) != noRank {
		return 1
	}
	switch {
	case len(piece) < middlePiece:
		return v.mergeShort(piece)
	case len(piece) < longPiece:
		return v.mergeMiddle(piece)
	}
	return v.mergeLong(piece)
}

// mergeShort joins the neighbours of lowest rank, leftmost first, until none can be joined.
func (v vocabulary) mergeShort(piece []byte) int {
	var starts [middlePiece + 1]int
	var ranks [middlePiece]uint32 // of the pair that begins at part i
	parts := len(piece)
	for i := range parts + 1 {
		starts[i] = i
	}
	for i := range parts - 1 {
		ranks[i] = v.Pair(piece[i], piece[i+1])
	}
	for parts > 1 {
		best := 0
		for i := 1; i < parts-1; i++ {
			if ranks[i] < ranks[best] {
				best = i
			}
		}
		if ranks[best] == noRank {
			break
		}
		copy(starts[best+1:parts], starts[best+2:parts+1])
		copy(ranks[best:parts-2], ranks[best+1:parts-1])
		parts--
		if best < parts-1 {
			ranks[best] = v.Rank(piece[starts[best]:starts[best+2]])
		}
		if best > 0 {
			ranks[best-1] = v.Rank(piece[starts[best-1]:starts[best+1]])
		}
	}
	return parts
}

// pairs is a heap of neighbouring parts that may be joined: the rank, then where the left one starts.
// container/heap would allocate at every push.
type pairs []uint64

func pairAt(rank uint32, left int32) uint64 { return uint64(rank)<<32 | uint64(left) }

// arity of the heap: wider is flatter, and misses the caches less.
const arity = 4

func (h pairs) down(i int) {
	p := h[i]
	for {
		first := arity*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h)); c++ {
			if h[c] < h[least] {
				least = c
			}
		}
		if p <= h[least] {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = p
}

func (h pairs) push(p uint64) pairs {
	h = append(h, p)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / arity
		if h[parent] <= p {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = p
	return h
}

// pop takes the first away: the lowest rank, leftmost of equals.
func (h pairs) pop() (rest pairs, rank uint32, left int32) {
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	if h = h[:last]; last > 0 {
		h.down(0)
	}
	return h, uint32(first >> 32), int32(first)
}

// hugePiece is the length in bytes from which pieces are merged one at a time:
// merging takes about 28 bytes a byte, and many calls may meet such a piece at once.
const hugePiece = 32 << 10

var huge sync.Mutex

// mergeLong is for pieces of any length.
func (v vocabulary) mergeLong(piece []byte) int {
	n := len(piece)
	if n >= hugePiece {
		huge.Lock()
		defer huge.Unlock()
	}
	return v.merge(piece, make([]int32, n), make([]int32, n), make([]uint32, n), make(pairs, 0, n+n/4))
}

// mergeMiddle is for pieces below longPiece, and allocates nothing.
func (v vocabulary) mergeMiddle(piece []byte) int {
	var end, before [longPiece]int32
	var ranks [longPiece]uint32
	var open [2 * longPiece]uint64
	return v.merge(piece, end[:], before[:], ranks[:], open[:0])
}

// merge is mergeShort in n log n: a heap of pairs over a linked list of
// parts; a pair whose parts have changed since is passed over.
//   - end of the part that starts here
//   - before: start of the part before
//   - ranks of the pair that starts here now; a start's pair only grows, so that no rank comes twice
func (v vocabulary) merge(piece []byte, end, before []int32, ranks []uint32, open pairs) int {
	n := int32(len(piece))
	for i := range n {
		end[i], before[i], ranks[i] = i+1, i-1, noRank
		if i+1 < n {
			if r := v.Pair(piece[i], piece[i+1]); r != noRank {
				ranks[i] = r
				open = append(open, pairAt(r, i))
			}
		}
	}
	for i := (len(open)+arity-2)/arity - 1; i >= 0; i-- {
		open.down(i)
	}
	parts := int(n)
	for len(open) > 0 {
		var rank uint32
		var left int32
		if open, rank, left = open.pop(); ranks[left] != rank {
			continue
		}
		right := end[left]
		next := end[right]
		end[left], ranks[left], ranks[right] = next, noRank, noRank
		parts--
		if next < n {
			before[next] = left
			if r := v.Rank(piece[left:end[next]]); r != noRank {
				ranks[left] = r
				open = open.push(pairAt(r, left))
			}
		}
		if b := before[left]; b >= 0 {
			ranks[b] = v.Rank(piece[b:next])
			if ranks[b] != noRank {
				open = open.push(pairAt(ranks[b], b))
			}
		}
	}
	return parts
}
