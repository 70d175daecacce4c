package tokens

import (
	"encoding/binary"

	"github.com/mcp-funnel/mcp-funnel/text/tokens/tables"
)

// pieceCounter counts the tokens of pieces. It holds the vocabulary, scratch memory and caches of earlier counts,
// about 450 KiB, is reused from text to text, and is not safe for concurrent use.
type pieceCounter struct {
	words memo // counts of short pieces; first field: aligns its slots to cache lines
	*tables.Vocabulary
	successors [1 << successorBits]successor
	pairs      [1 << pairBits][2]uint64 // each the ranks of two tokens and whether they stay apart; 0: empty

	// Scratch for the current piece:
	ends     tables.Ends
	deadEnds []uint64 // one bit per offset; set if no tokens fit from there to the end
	sizes    []uint8  // of the tokens placed so far: length in bytes minus one, and the bit again
}

const (
	pairBits = 13
	// Pieces of up to shortPiece bytes are merged as BPE defines it. So are pieces of up to tables.MergeMax bytes
	// that begin with a token of at most shortToken bytes, as random letters do.
	shortPiece  = 8
	shortToken  = 3
	keepScratch = 64 << 10 // maximum piece in bytes for which the scratch is kept
)

// countTokens returns the number of tokens in one piece. BPE joins the neighbours of lowest rank, leftmost first,
// until none can be joined. countTokens finds the same result without joining: a sequence of tokens is the result
// exactly if every two neighbours, merged by themselves, stay as they are, because the first merge across a boundary
// would also occur between its two tokens alone. So it places the longest tokens side by side, tries shorter ones if
// two would not stay apart, and backtracks if no token fits. The tokens before an offset are always the same, so it
// never retries an offset where no token fits. Its time is linear in the length. It needs 1.2 bytes of memory per
// byte.
func (d *pieceCounter) countTokens(piece []byte) int {
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
	return d.tile(piece)
}

// tile counts the tokens of a piece by placing tokens side by side.
func (d *pieceCounter) tile(piece []byte) (parts int) {
	if len(piece) > len(d.sizes) {
		d.deadEnds, d.sizes = make([]uint64, len(piece)/64+1), make([]uint8, len(piece))
	}
	clear(d.deadEnds[:len(piece)/64+1])
	at, last := 0, uint32(noToken)
	place := func(e tables.End, how uint8) {
		d.sizes[parts] = uint8(e.Len()-1) | how
		parts++
		last, at = e.Rank(), at+e.Len()
	}
	for at < len(piece) {
		begin, known := d.successorSlot(last, piece, at)
		if e := known.next; known.last == last && known.begin == begin && e != 0 &&
			e.Len() <= len(piece)-at && d.mayContinue(at+e.Len()) {
			place(e, again)
			continue
		}
		left := d.Prefixes(piece[at:], &d.ends)
		longest := d.ends[left-1]
		for left--; ; left-- {
			for left < 0 { // no token fits here: backtrack
				d.deadEnds[at/64] |= 1 << (at % 64)
				parts--
				size := d.sizes[parts]
				failed := int(size&^again) + 1
				at -= failed
				if last = noToken; parts > 0 {
					last, _ = d.Longest(piece[at-int(d.sizes[parts-1]&^again)-1 : at])
				}
				left = d.Prefixes(piece[at:], &d.ends) - 1
				longest, known = d.ends[left], nil
				// if the failed token was the first one tried, shorter ones remain to be tried
				for size&again == 0 && left >= 0 && d.ends[left].Len() >= failed {
					left--
				}
			}
			if d.fits(last, d.ends[left], piece, at) {
				break
			}
		}
		e := d.ends[left]
		if known != nil && longest.Len() <= successorBytes {
			*known = successor{begin, last, e}
		}
		place(e, 0)
		if n := e.Len(); n >= runToken { // repeated characters mostly give repeated tokens
			for len(piece)-at >= n && string(piece[at:at+n]) == string(piece[at-n:at]) && d.fits(last, e, piece, at) {
				place(e, again)
			}
		}
	}
	if len(d.sizes) > keepScratch {
		d.deadEnds, d.sizes = nil, nil
	}
	return parts
}

// successor is a cache entry: the token that followed last before text with the same first bytes. That token matches
// the text and stays apart from last, so it can be used if the piece is long enough.
type successor struct {
	begin uint64
	last  uint32
	next  tables.End // 0: empty
}

const (
	successorBits  = 12
	successorBytes = 8 // length of the compared beginning of the text, in bytes
)

// successorSlot returns the slot for an offset of the piece, and the successorBytes bytes at the offset, padded with
// zeros after the end of the piece.
func (d *pieceCounter) successorSlot(last uint32, piece []byte, at int) (begin uint64, where *successor) {
	if left := len(piece) - at; left >= successorBytes {
		begin = binary.LittleEndian.Uint64(piece[at:])
	} else {
		for i, c := range piece[at:] {
			begin |= uint64(c) << (8 * i)
		}
	}
	return begin, &d.successors[hashOf(begin, uint64(last))>>(64-successorBits)]
}

// mayContinue reports whether the offset is not a known dead end.
func (d *pieceCounter) mayContinue(at int) bool { return d.deadEnds[at/64]>>(at%64)&1 == 0 }

// fits reports whether token e may follow token last at an offset of the piece.
func (d *pieceCounter) fits(last uint32, e tables.End, piece []byte, at int) bool {
	return d.mayContinue(at+e.Len()) && (last == noToken || d.isBoundary(last, e.Rank(), piece[at:]))
}

const noToken = 1<<18 - 1 // larger than any rank

// A token of runToken bytes or more is tried again after itself before all other tokens. The bit again in d.sizes
// marks tokens placed in this way or from a cache: the longest token was not tried before them.
const (
	runToken = 8
	again    = 0x80
)

// isBoundary is Vocabulary.IsBoundary with a cache.
func (d *pieceCounter) isBoundary(left, right uint32, after []byte) bool {
	key := uint64(left)<<32 | uint64(right)<<1 | 1<<63
	at := &d.pairs[mix(key)>>(64-pairBits)]
	if at[0]&^1 == key {
		return at[0]&1 != 0
	}
	if at[1]&^1 == key {
		return at[1]&1 != 0
	}
	apart := d.IsBoundary(left, right, after)
	if apart {
		key |= 1
	}
	at[0], at[1] = key, at[0]
	return apart
}

// countPiece counts the piece of n bytes at an offset of the text.
func (d *pieceCounter) countPiece(text []byte, from, n int) int {
	if n > memoPiece {
		return d.countTokens(text[from : from+n])
	}
	low, high := keyOf(text[from:], n)
	hash := hashOf(low, high)
	at := &d.words[hash>>(64-memoBits)]
	if at[0].matches(low, high) {
		return at[0].count()
	}
	if at[1].matches(low, high) {
		at[0], at[1] = at[1], at[0]
		return at[0].count()
	}
	count := d.countTokens(text[from : from+n])
	at[0], at[1] = memoEntry{low, high | uint64(count)<<memoCount}, at[0]
	return count
}
