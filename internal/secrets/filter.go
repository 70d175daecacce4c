package secrets

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// gram is how many bytes of a keyword the filter looks for.
const gram = 4

// shortest is how long a text must be to hold any secret.
const shortest = 12

// filter finds keywords of all formats in one pass. A keyword is looked for by four bytes of it, a window, and each window by
// three bytes of it that stand at an even place: of these one bit in a small table says whether there is anything to look
// at. So six bytes of text cost three look-ups and one branch. Letters are folded to lower case. Where there are vectors, they
// look at 32 places at a time before, see nibbles.
type filter struct {
	bits  [1 << (triple - 6)]uint64
	table [1 << places]slot // open addressing by the window's four bytes
	hits  []hit             // of each slot in a row
	sets  func() *sets      // of all windows; made for the first text of some length
}

// triple is how many bits a hash of three bytes has.
const triple = 17

// places is how many bits a place in the table has: some 500 windows fill half of them. The tables are made anew by each process, and
// a page of memory that is touched for the first time takes as long as 50 windows.
const places = 10

// slot is a window, with its hits.
type slot struct {
	gram     uint32 // 0: none
	from, to uint16
}

// hit is what a window of four bytes may be the beginning of.
type hit struct {
	keyword string // as it stands, or in lower case where fold
	offset  int    // of the window in it
	fold    bool
	format  *Format
}

var compiled = sync.OnceValue(func() *filter { return filterOf(Formats()) })

func filterOf(formats []*Format) *filter {
	f := &filter{}
	list := make([]hit, 0, 1<<places)
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
	f.sets = sync.OnceValue(func() *sets { return setsOf(f.grams()) })
	return f
}

// slot is that of a window, or the one to put it in.
func (f *filter) slot(g uint32) *slot {
	p := place(g)
	for f.table[p].gram != g && f.table[p].gram != 0 {
		p = (p + 1) % len(f.table)
	}
	f.table[p].gram = g
	return &f.table[p]
}

// grams are all windows.
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

func place(g uint32) int { return int(g * 2654435761 >> (32 - places)) }

// hash3 is of the lower three bytes of g.
func hash3(g uint32) uint32 { return g << 8 * 2654435761 >> (32 - triple) }

func (f *filter) bit(h uint32) uint64 { return f.bits[h>>6] >> (h & 63) }

// vectorsFrom is how long a text must be to be looked through by vectors: what they need is not made for a short one.
const vectorsFrom = 4 << 10

// next is the first index from i on where the window of a keyword stands, with what it may be; len(b) for none. What it saw before it
// needed to is in a, which belongs to b and is empty at first; nil: it looks at one window after the other.
func (f *filter) next(a *ahead, b []byte, i int) (int, []hit) {
	for a != nil {
		if i < a.from || i >= a.to {
			if a.look(f, b, i); i == a.to {
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

// within is next within what a saw; the end of that for none.
func (f *filter) within(a *ahead, b []byte, i int) (int, []hit) {
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

// plain is next where there are no vectors, and for the rest of a text that is too short for them.
func (f *filter) plain(b []byte, i int) (int, []hit) {
	const folded = 0x2020202020202020
	low := i // no window begins before it
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

// at are the hits whose window stands at i.
func (f *filter) at(b []byte, i int) []hit {
	if i+gram > len(b) {
		return nil
	}
	g := foldGram(b[i:])
	for p := place(g); f.table[p].gram != 0; p = (p + 1) % len(f.table) {
		if s := f.table[p]; s.gram == g {
			return f.hits[s.from:s.to]
		}
	}
	return nil
}

// gram is the window.
func (h *hit) gram() uint32 {
	k := h.keyword[h.offset:]
	return (uint32(k[0]) | uint32(k[1])<<8 | uint32(k[2])<<16 | uint32(k[3])<<24) | 0x20202020
}

// stands says whether the keyword is there, its window being at i, and where it begins.
func (h *hit) stands(b []byte, i int) (from int, ok bool) {
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
