package secrets

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// gram is the length of a gram in bytes: the part of each keyword that the filter searches for.
const gram = 4

// shortest is the minimum length, in bytes, of a text that can contain a secret.
const shortest = 12

// filter is the pre-filter: it finds the keywords of all formats in one pass, with letters folded to lower case. It
// searches for a gram of each keyword: it looks up each position in a bit set, and then in a hash table. On CPUs with
// vectors, 32 positions at a time are tested before, see nibbles.
type filter struct {
	known   known
	table   [1 << slotBits]slot // hash table by gram, with open addressing
	hits    []hit               // the hits of one slot are adjacent
	nibbles func() *nibbles     // returns the vector tables of all grams; the first call builds them
}

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
		f.known.add(h.gram())
		s := f.slot(h.gram())
		f.hits[s.to] = h
		s.to++
	}
	f.nibbles = sync.OnceValue(func() *nibbles { return newNibbles(f.grams()) })
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

// vectorsFrom is the minimum length, in bytes, of a text for which vectors are used. For shorter texts, building
// their tables would not pay.
const vectorsFrom = 4 << 10

// next returns the first position of a gram from i on and the hits of the gram; len(b) if there is none. a has the
// candidates that were found in b so far; it must be empty at first.
func (f *filter) next(a *candidates, b []byte, i int) (int, []hit) {
	for ; i+gram <= len(b); i = a.to {
		if i < a.from || i >= a.to {
			a.fill(f, b, i)
		}
		words, ahead := a.may[:(a.to-a.from+63)/64], ^uint64(0)<<((i-a.from)%64)
		for k := (i - a.from) / 64; k < len(words); k++ {
			for word := words[k] & ahead; word != 0; word &= word - 1 {
				at := a.from + k*64 + bits.TrailingZeros64(word)
				if f.known.has(foldGram(b[at:])) {
					if hits := f.at(b, at); hits != nil {
						return at, hits
					}
				}
			}
			ahead = ^uint64(0)
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
func (h *hit) gram() uint32 { return foldGram([]byte(h.keyword[h.offset:])) }

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

// candidates are the positions in a range of a text at which grams may start.
type candidates struct {
	from, to int // range in the text; equal if empty
	may      [candidateBytes / 64]uint64
}

const candidateBytes = 4 << 10

// fill moves the range to start at i, of which b has a gram. Without vectors, and at the end of a text, where too few
// bytes are left for them, it tests each position.
func (a *candidates) fill(f *filter, b []byte, i int) {
	n := min(candidateBytes, len(b)-gram-i) &^ 31
	if haveVectors && n > 0 && len(b) >= vectorsFrom {
		words := a.may[:(n+63)/64]
		words[len(words)-1] = 0 // gramsMask may write half of the last word
		gramsMask(&b[i], n, f.nibbles(), &words[0])
	} else {
		n = min(candidateBytes, len(b)-gram-i+1)
		f.known.mask(b[i:], n, &a.may)
	}
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
var commonPairs = strings.Fields("th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha " +
	"as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ss wo rd ke ti ec et cr ie pi ey ok ss " +
	"sp ac")

// rarestWindow returns the offset of the first gram of a keyword that does not end with a common pair; 0 if none.
func rarestWindow(k string) int {
	for i := 0; i+gram <= len(k); i++ {
		if !slices.Contains(commonPairs, strings.ToLower(k[i+2:i+gram])) {
			return i
		}
	}
	return 0
}
