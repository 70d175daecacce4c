package secrets

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
)

// gram is the length of a gram in bytes: the part of each keyword that the filter searches for.
const gram = 4

// shortest is the minimum length, in bytes, of a text that can contain a secret.
const shortest = 12

// filter is the pre-filter: it finds the keywords of all formats in one pass, with letters folded to lower case. It
// searches for a gram of each keyword, and at every second position it looks up a hash of three bytes in a small bit
// table: one of the two triples of a gram is always at such a position. So six bytes of text cost three look-ups and
// one branch. On CPUs with vectors, 32 positions at a time are tested before, see nibbles.
type filter struct {
	bits  [1 << (hashBits - 6)]uint64
	table [1 << slotBits]slot // hash table by gram, with open addressing
	hits  []hit               // the hits of one slot are adjacent
	sets  func() *sets        // returns the vector tables of all grams; the first call builds them
}

// hashBits is the number of bits in a hash of three bytes.
const hashBits = 17

// slotBits is the number of bits in the index of a slot: about 500 grams fill half of the slots. The table is small
// because each process builds it, and the first write to a page of memory takes as long as adding 50 grams.
const slotBits = 10

// slot is a gram with the range of its hits.
type slot struct {
	gram     uint32 // 0: none
	from, to uint16
}

// hit is a keyword that contains a given gram.
type hit struct {
	keyword string // in lower case if fold
	offset  int    // offset of the gram in the keyword
	fold    bool
	format  *Format
}

func newFilter(formats []*Format) *filter {
	f := &filter{}
	list := make([]hit, 0, 1<<slotBits)
	for _, format := range formats {
		list = format.hits(list)
	}
	for i := range list {
		f.slot(list[i].gram()).to++
	}
	n := uint16(0)
	for i := range f.table {
		s := &f.table[i]
		s.from, s.to, n = n, n, n+s.to
	}
	f.hits = make([]hit, len(list))
	for _, h := range list {
		g := h.gram()
		for _, h := range []uint32{hash3(g), hash3(g >> 8)} {
			f.bits[h>>6] |= 1 << (h & 63)
		}
		s := f.slot(g)
		f.hits[s.to] = h
		s.to++
	}
	f.sets = sync.OnceValue(func() *sets { return newGramSets(f.grams()) })
	return f
}

// slot returns the slot of a gram, and assigns a free slot to a new gram.
func (f *filter) slot(g uint32) *slot {
	p := slotIndex(g)
	for f.table[p].gram != g && f.table[p].gram != 0 {
		p = (p + 1) % len(f.table)
	}
	f.table[p].gram = g
	return &f.table[p]
}

// grams returns all grams in the table.
func (f *filter) grams() []uint32 {
	var list []uint32
	for _, s := range f.table {
		if s.gram != 0 {
			list = append(list, s.gram)
		}
	}
	return list
}

func foldGram(b []byte) uint32 { return binary.LittleEndian.Uint32(b) | 0x20202020 }

func slotIndex(g uint32) int { return int(g * 2654435761 >> (32 - slotBits)) }

// hash3 hashes the lower three bytes of g.
func hash3(g uint32) uint32 { return g << 8 * 2654435761 >> (32 - hashBits) }

func (f *filter) bit(h uint32) uint64 { return f.bits[h>>6] >> (h & 63) }

// vectorsFrom is the minimum length, in bytes, of a text for which vectors are used. For shorter texts, building
// their tables would not pay.
const vectorsFrom = 4 << 10

// next returns the first position of a gram from i on and the hits of the gram; len(b) if there is none. a caches the
// candidate positions that vectors found in b. It must be empty at first, or nil to search without vectors.
func (f *filter) next(a *lookahead, b []byte, i int) (int, []hit) {
	for a != nil {
		if i < a.from || i >= a.to {
			if a.fill(f, b, i); i == a.to {
				break
			}
		}
		if a.none {
			i = a.to
			continue
		}
		var hits []hit
		if i, hits = f.within(a, b, i); hits != nil {
			return i, hits
		}
	}
	return f.plain(b, i)
}

// within is next for the range of a; it returns the end of that range if there is no gram in it.
func (f *filter) within(a *lookahead, b []byte, i int) (int, []hit) {
	k := (i - a.from) / 64
	words := a.may[:(a.to-a.from+63)/64]
	for word := words[k] &^ (1<<((i-a.from)%64) - 1); ; word = words[k] {
		for ; word != 0; word &= word - 1 {
			at := a.from + k*64 + bits.TrailingZeros64(word)
			if hits := f.at(b, at); hits != nil {
				return at, hits
			}
		}
		if k++; k == len(words) {
			return a.to, nil
		}
	}
}

// plain is next without vectors. It also searches the last bytes of a text, which are too few for vectors.
func (f *filter) plain(b []byte, i int) (int, []hit) {
	const folded = 0x2020202020202020
	low := i // no gram starts before low
	for ; i+8 <= len(b); i += 6 {
		w := binary.LittleEndian.Uint64(b[i:]) | folded
		first, second, third := f.bit(hash3(uint32(w))), f.bit(hash3(uint32(w>>16))), f.bit(hash3(uint32(w>>32)))
		if (first|second|third)&1 == 0 {
			continue
		}
		for at := max(i-1, low); at <= i+4; at++ {
			if hits := f.at(b, at); hits != nil {
				return at, hits
			}
		}
	}
	for at := max(i-1, low); at+gram <= len(b); at++ {
		if hits := f.at(b, at); hits != nil {
			return at, hits
		}
	}
	return len(b), nil
}

// at returns the hits of the gram at i; nil if none.
func (f *filter) at(b []byte, i int) []hit {
	if i+gram > len(b) {
		return nil
	}
	g := foldGram(b[i:])
	for p := slotIndex(g); f.table[p].gram != 0; p = (p + 1) % len(f.table) {
		if s := f.table[p]; s.gram == g {
			return f.hits[s.from:s.to]
		}
	}
	return nil
}

// gram returns the gram of the keyword, in lower case.
func (h *hit) gram() uint32 {
	k := h.keyword[h.offset:]
	return (uint32(k[0]) | uint32(k[1])<<8 | uint32(k[2])<<16 | uint32(k[3])<<24) | 0x20202020
}

// matchesAt reports whether the whole keyword is in b, given that its gram is at i, and returns the keyword's start.
func (h *hit) matchesAt(b []byte, i int) (from int, ok bool) {
	from = i - h.offset
	if from < 0 || from+len(h.keyword) > len(b) {
		return 0, false
	}
	for j := range len(h.keyword) {
		c := b[from+j]
		if h.fold && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != h.keyword[j] {
			return 0, false
		}
	}
	return from, true
}

// lookahead holds the positions in a range of a text at which grams may start, as found by vectors.
type lookahead struct {
	from, to int  // range in the text; equal if empty
	none     bool // no gram may start in the range
	may      [lookaheadBytes / 64]uint64
}

const lookaheadBytes = 4 << 10

// newLookahead returns an empty lookahead; nil if the CPU has no vectors or b is too short for them.
func newLookahead(b []byte) *lookahead {
	if !haveVectors || len(b) < vectorsFrom {
		return nil
	}
	return &lookahead{}
}

// fill moves the range to start at i and tests its positions. The range is empty if too few bytes are left for
// vectors.
func (a *lookahead) fill(f *filter, b []byte, i int) {
	n := min(lookaheadBytes, len(b)-gram-i) &^ 31
	if n <= 0 {
		a.from, a.to = i, i
		return
	}
	words := a.may[:(n+63)/64]
	words[len(words)-1] = 0 // gramsMask may write half of the last word
	sets := f.sets()
	gramsMask(&b[i], n, &sets.nibbles, &words[0])
	a.none = knownMask(&b[i], len(words), &sets.known, &words[0]) == 0
	a.from, a.to = i, i+n
}

// hits appends the keywords of the format to list. A keyword shorter than four bytes is added once for each byte that
// may follow it.
func (f *Format) hits(list []hit) []hit {
	if f.Keywords == "" {
		return list
	}
	for k := range strings.SplitSeq(f.Keywords, "|") {
		if len(k) >= gram {
			list = append(list, hit{k, rarestWindow(k), f.fold, f})
			continue
		}
		var completed []byte
		set := f.shape().parts[0].set
		for c := range byte(0x80) {
			if set[c] {
				completed = append(append(completed, k...), c)
			}
		}
		for all, n := string(completed), len(k)+1; all != ""; all = all[n:] {
			list = append(list, hit{all[:n], 0, f.fold, f})
		}
	}
	return list
}

// commonPairs are the most frequent pairs of letters in English. A gram that ends with one of them would match often
// and slow the filter down.
const commonPairs = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ss wo rd ke ti ec et cr ie pi ey ok ss sp ac"

// rarestWindow returns the offset of the first gram of a keyword that does not end with a common pair; 0 if none.
func rarestWindow(k string) int {
	for i := 0; i+gram <= len(k); i++ {
		if !isCommon(k[i+2]|0x20, k[i+3]|0x20) {
			return i
		}
	}
	return 0
}

func isCommon(a, b byte) bool {
	for i := 0; i < len(commonPairs); i += 3 {
		if commonPairs[i] == a && commonPairs[i+1] == b {
			return true
		}
	}
	return false
}
