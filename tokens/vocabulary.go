package tokens

import (
	"sync"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// vocabulary says how many tokens a piece is.
type vocabulary struct {
	tables.Vocabulary
}

const noRank = tables.NoRank

// longPiece is the length in bytes from which merging by a heap costs less than
// looking for the lowest rank each time.
const longPiece = 100

// count is how many tokens one piece is.
func (v *vocabulary) count(piece []byte) int {
	if len(piece) == 1 {
		return 1
	}
	if v.Rank(piece) != noRank {
		return 1
	}
	if len(piece) < longPiece {
		return v.mergeShort(piece)
	}
	return v.mergeLong(piece)
}

// mergeShort joins the neighbours of lowest rank, leftmost first, until none can be joined.
func (v *vocabulary) mergeShort(piece []byte) int {
	var starts [longPiece + 1]int
	var ranks [longPiece]uint32 // of the pair that begins at part i
	parts := len(piece)
	for i := range parts + 1 {
		starts[i] = i
	}
	for i := range parts - 1 {
		ranks[i] = v.Rank(piece[i : i+2])
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

// pair is two neighbouring parts that may be joined.
type pair struct {
	rank             uint32
	left, right, end int32 // where the parts start, and where the right one ends
}

func (p pair) before(q pair) bool {
	return p.rank < q.rank || p.rank == q.rank && p.left < q.left
}

// pairs is a heap; container/heap would allocate at every push.
type pairs []pair

func (h pairs) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (h *pairs) push(p pair) {
	*h = append(*h, p)
	for i := len(*h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !(*h)[i].before((*h)[parent]) {
			return
		}
		(*h)[i], (*h)[parent] = (*h)[parent], (*h)[i]
		i = parent
	}
}

func (h *pairs) pop() pair {
	old := *h
	first := old[0]
	old[0] = old[len(old)-1]
	*h = old[:len(old)-1]
	h.down(0)
	return first
}

// hugePiece is the length in bytes from which pieces are merged one at a time:
// merging takes about 40 bytes a byte, and many calls may meet such a piece at once.
const hugePiece = 32 << 10

var huge sync.Mutex

// mergeLong is mergeShort in n log n: a heap of pairs over a linked list of
// parts; a pair whose parts have changed since is passed over.
func (v *vocabulary) mergeLong(piece []byte) int {
	if len(piece) >= hugePiece {
		huge.Lock()
		defer huge.Unlock()
	}
	n := int32(len(piece))
	end := make([]int32, n)    // of the part that starts here; 0: no part starts here
	before := make([]int32, n) // start of the part before
	open := make(pairs, 0, n)
	for i := range n {
		end[i], before[i] = i+1, i-1
		if i > 0 {
			if r := v.Rank(piece[i-1 : i+1]); r != noRank {
				open = append(open, pair{r, i - 1, i, i + 1})
			}
		}
	}
	for i := len(open)/2 - 1; i >= 0; i-- {
		open.down(i)
	}
	parts := int(n)
	for len(open) > 0 {
		p := open.pop()
		if end[p.left] != p.right || end[p.right] != p.end {
			continue
		}
		end[p.left], end[p.right] = p.end, 0
		parts--
		if p.end < n {
			before[p.end] = p.left
			if r := v.Rank(piece[p.left:end[p.end]]); r != noRank {
				open.push(pair{r, p.left, p.end, end[p.end]})
			}
		}
		if b := before[p.left]; b >= 0 {
			if r := v.Rank(piece[b:p.end]); r != noRank {
				open.push(pair{r, b, p.left, p.end})
			}
		}
	}
	return parts
}
