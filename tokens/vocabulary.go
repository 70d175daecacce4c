package tokens

import (
	"math/bits"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// desk is what one counting works on: the vocabulary, and what it remembers of the counts before. About 400 KiB, used
// again from text to text, and not safe for concurrent use.
type desk struct {
	*tables.Vocabulary
	words memo
	pairs [1 << pairBits][2]uint64 // a pair's two ranks, whether it stays one; 0: none

	// Of the piece at hand:
	ends  tables.Ends
	dead  []uint64 // a bit for each place from which no token leads on
	sizes []uint8  // of the tokens laid, in bytes less one
}

const (
	pairBits = 13
	keepDesk = 64 << 10 // the longest piece in bytes whose scratch is kept for the next
)

// count is how many tokens one piece is: what is left when the neighbours of lowest rank are joined, leftmost first,
// until none can be joined. It joins none. Tokens are what that leaves exactly where each two neighbours, merged by
// themselves, are left as they are: a first merge across a border would be one of theirs too. So it lays the longest
// tokens side by side, takes shorter ones where two would not stay apart, and goes back where nothing fits. The tokens
// that lead to a place are always the same ones, so that a place where nothing fits is never tried again: the time
// is in proportion to the length. It holds 1.2 bytes a byte.
func (d *desk) count(piece []byte) int {
	left := d.Prefixes(piece, &d.ends)
	if n := d.ends[left-1].Len(); n == len(piece) {
		return 1
	}
	if len(piece) == 2 { // any byte is a token
		return 2
	}
	if len(piece) > len(d.sizes) {
		d.dead, d.sizes = make([]uint64, len(piece)/64+1), make([]uint8, len(piece))
	}
	clear(d.dead[:len(piece)/64+1])
	parts := d.lay(piece, left)
	if len(d.sizes) > keepDesk {
		d.dead, d.sizes = nil, nil
	}
	return parts
}

// lay counts the tokens of a piece; left is how many of d.ends are at its beginning.
func (d *desk) lay(piece []byte, left int) (parts int) {
	at := 0
	var last uint32
	for {
		for left--; left < 0; left-- { // nothing fits here: go back
			d.dead[at/64] |= 1 << (at % 64)
			parts--
			end := at
			at -= int(d.sizes[parts]&^again) + 1
			if d.sizes[parts]&again != 0 {
				left = d.Prefixes(piece[at:], &d.ends) // none was tried yet but this one, whose end is dead
			} else {
				left = d.Prefixes(piece[at:end-1], &d.ends)
			}
			if parts > 0 {
				last, _ = d.Longest(piece[at-int(d.sizes[parts-1]&^again)-1 : at])
			}
		}
		rank, n := d.ends[left].Rank(), d.ends[left].Len()
		end := at + n
		if d.isDead(end) || parts > 0 && !d.apart(last, rank, piece[at:]) {
			continue
		}
		d.sizes[parts] = uint8(n - 1)
		parts++
		last, at = rank, end
		if n >= runToken { // one sign again and again is mostly one token again and again
			for len(piece)-at >= n && string(piece[at:at+n]) == string(piece[at-n:at]) && !d.isDead(at+n) && d.apart(rank, rank, piece[at:]) {
				d.sizes[parts] = uint8(n-1) | again
				parts++
				at += n
			}
		}
		if at == len(piece) {
			return parts
		}
		left = d.Prefixes(piece[at:], &d.ends)
	}
}

// A token of runToken bytes or more is tried after itself before all others; again marks in d.sizes that it was.
const (
	runToken = 8
	again    = 0x80
)

func (d *desk) isDead(at int) bool { return d.dead[at/64]>>(at%64)&1 != 0 }

// apart is Apart, remembered.
func (d *desk) apart(left, right uint32, after []byte) bool {
	key := uint64(left)<<32 | uint64(right)<<1 | 1<<63
	over, mixed := bits.Mul64(key, 0x9e3779b97f4a7c15)
	at := &d.pairs[(over^mixed)>>(64-pairBits)]
	if at[0]&^1 == key {
		return at[0]&1 != 0
	}
	if at[1]&^1 == key {
		return at[1]&1 != 0
	}
	apart := d.Apart(left, right, after)
	if apart {
		key |= 1
	}
	at[0], at[1] = key, at[0]
	return apart
}
