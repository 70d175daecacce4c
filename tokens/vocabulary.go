package tokens

import (
	"encoding/binary"
	"math/bits"

	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// desk is what one counting works on: the vocabulary, and what it remembers of the counts before. About 715 KiB, used
// again from text to text, and not safe for concurrent use.
type desk struct {
	words memo // at the beginning, as its places are parts of a line of the cache
	*tables.Vocabulary
	phrases longMemo
	missed  [64]missed // of them, misses
	misses  int
	hints   [1 << hintBits]hint
	steps   [1 << stepBits]step
	pairs   [1 << pairBits][2]uint64 // a pair's two ranks, whether it stays one; 0: none

	// Of the piece at hand:
	ends  tables.Ends
	dead  []uint64 // a bit for each place from which no token leads on
	sizes []uint8  // of the tokens laid, in bytes less one
}

const (
	pairBits = 13
	// Pieces up to shortPiece bytes are merged, and up to tables.MergeMax where their longest token is no longer than
	// shortToken, as in random letters.
	shortPiece = 8
	shortToken = 3
	keepDesk   = 64 << 10 // the longest piece in bytes whose scratch is kept for the next
)

// count is how many tokens one piece is: what is left when the neighbours of lowest rank are joined, leftmost first,
// until none can be joined. It joins none. Tokens are what that leaves exactly where each two neighbours, merged by
// themselves, are left as they are: a first merge across a border would be one of theirs too. So it lays the longest
// tokens side by side, takes shorter ones where two would not stay apart, and goes back where nothing fits. The tokens
// that lead to a place are always the same ones, so that a place where nothing fits is never tried again: the time
// is in proportion to the length. It holds 1.2 bytes a byte.
func (d *desk) count(piece []byte) int {
	if n := len(piece); n <= shortPiece {
		return d.Merge(piece)
	}
	if n := len(piece); n <= tables.MergeMax {
		switch _, longest := d.Longest(piece); {
		case longest == n:
			return 1
		case longest <= shortToken:
			return d.Merge(piece)
		}
	}
	return d.layAll(piece)
}

// layAll is lay with room for the piece.
func (d *desk) layAll(piece []byte) int {
	if len(piece) > len(d.sizes) {
		d.dead, d.sizes = make([]uint64, len(piece)/64+1), make([]uint8, len(piece))
	}
	clear(d.dead[:len(piece)/64+1])
	parts := d.lay(piece)
	if len(d.sizes) > keepDesk {
		d.dead, d.sizes = nil, nil
	}
	return parts
}

// lay counts the tokens of a piece.
func (d *desk) lay(piece []byte) (parts int) {
	at, last := 0, uint32(noToken)
	place := func(e tables.End, how uint8) {
		d.sizes[parts] = uint8(e.Len()-1) | how
		parts++
		last, at = e.Rank(), at+e.Len()
	}
	for at < len(piece) {
		begin, known := d.stepAt(last, piece, at)
		if e := known.next; known.last == last && known.begin == begin && e != 0 && e.Len() <= len(piece)-at && d.open(at+e.Len()) {
			place(e, again)
			continue
		}
		left := d.Prefixes(piece[at:], &d.ends)
		longest := d.ends[left-1]
		if e, ok := d.hinted(last, longest, left); ok && d.fits(last, e, piece, at) {
			place(e, again)
			continue
		}
		for left--; ; left-- {
			for left < 0 { // nothing fits here: go back
				d.dead[at/64] |= 1 << (at % 64)
				parts--
				size := d.sizes[parts]
				failed := int(size&^again) + 1
				at -= failed
				if last = noToken; parts > 0 {
					last, _ = d.Longest(piece[at-int(d.sizes[parts-1]&^again)-1 : at])
				}
				left = d.Prefixes(piece[at:], &d.ends) - 1
				longest, known = d.ends[left], nil
				for size&again == 0 && left >= 0 && d.ends[left].Len() >= failed { // where it was tried before all others, all are left
					left--
				}
			}
			if d.fits(last, d.ends[left], piece, at) {
				break
			}
		}
		e := d.ends[left]
		if known != nil && longest.Len() <= stepBytes {
			*known = step{begin, last, e}
		} else if e != longest {
			d.hint(last, longest, e)
		}
		place(e, 0)
		if n := e.Len(); n >= runToken { // one sign again and again is mostly one token again and again
			for len(piece)-at >= n && string(piece[at:at+n]) == string(piece[at-n:at]) && d.fits(last, e, piece, at) {
				place(e, again)
			}
		}
	}
	return parts
}

// step remembers which token came after last where a text goes on as it begins. It is a token of the text, and stays apart from
// last, wherever it has room.
type step struct {
	begin uint64
	last  uint32
	next  tables.End // 0: none
}

const (
	stepBits  = 12
	stepBytes = 8 // of a text's beginning
)

// stepAt is where the step at a place of the piece is remembered, and the beginning to compare, with zeros after the piece's end.
func (d *desk) stepAt(last uint32, piece []byte, at int) (begin uint64, where *step) {
	if left := len(piece) - at; left >= stepBytes {
		begin = binary.LittleEndian.Uint64(piece[at:])
	} else {
		for i, c := range piece[at:] {
			begin |= uint64(c) << (8 * i)
		}
	}
	return begin, &d.steps[tables.Hash(begin, uint64(last))>>(64-stepBits)]
}

// open says that a place of the piece is not known to lead nowhere.
func (d *desk) open(at int) bool { return d.dead[at/64]>>(at%64)&1 == 0 }

// fits says whether a token may stand after last, at a place of the piece.
func (d *desk) fits(last uint32, e tables.End, piece []byte, at int) bool {
	return d.open(at+e.Len()) && (last == noToken || d.apart(last, e.Rank(), piece[at:]))
}

const noToken = 1<<18 - 1 // no rank

// hinted is the token that came after last at another place where longest, the last of so many of d.ends, did not fit.
func (d *desk) hinted(last uint32, longest tables.End, of int) (e tables.End, ok bool) {
	if longest.Len() < runToken {
		return 0, false
	}
	return d.hintedRun(last, longest, of)
}

func (d *desk) hintedRun(last uint32, longest tables.End, of int) (e tables.End, ok bool) {
	h := &d.hints[hintAt(last, longest)]
	if h.last != last || h.longest != longest {
		return 0, false
	}
	for i := min(h.size, of) - 1; i >= 0; i-- {
		if e := d.ends[i]; e.Len() <= h.size {
			return e, e.Len() == h.size
		}
	}
	return 0, false
}

func (d *desk) hint(last uint32, longest, e tables.End) {
	d.hints[hintAt(last, longest)] = hint{last, longest, e.Len()}
}

// hint remembers which token fitted after last where a longer one is a token too: in long runs of white space the
// longest seldom fits.
type hint struct {
	last    uint32
	longest tables.End
	size    int
}

const hintBits = 9

func hintAt(last uint32, longest tables.End) uint64 {
	return mix(uint64(last)<<32|uint64(longest)) >> (64 - hintBits)
}

// A token of runToken bytes or more is tried after itself before all others; again marks in d.sizes
// that it was, or that it was tried as hinted.
const (
	runToken = 8
	again    = 0x80
)

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
