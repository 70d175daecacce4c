package secrets

import (
	"encoding/binary"
	"sync"
)

// gram is how many bytes of a keyword the filter looks for.
const gram = 4

// shortest is how long a text must be to hold any secret.
const shortest = 12

// filter finds keywords of all formats in one pass. A keyword is looked for by four bytes of it, a window, and each window by
// three bytes of it that stand at an even place: of these one bit in a small table says whether there is anything to look
// at. So six bytes of text cost three look-ups and one branch. Letters are folded to lower case. Where there are vectors, they
// look at 16 places at a time instead, see nibbles.
type filter struct {
	bits  [1 << (triple - 6)]uint64
	table [tableSize]slot // open addressing by the window's four bytes
	all   []*Format
	grams []uint32        // of all windows
	sets  func() *nibbles // of them; made for the first text of some length
}

// triple is how many bits a hash of three bytes has.
const triple = 17

const tableSize = 1 << 13

type slot struct {
	gram uint32
	hits []hit
}

// hit is what a window of four bytes may be the beginning of.
type hit struct {
	keyword string // as it stands, or in lower case where fold
	offset  int    // of the window in it
	fold    bool
	format  *Format
}

var compiled = sync.OnceValue(func() *filter {
	f := &filter{all: Formats()}
	for _, format := range f.all {
		for _, k := range format.keywords() {
			f.add(k, format)
		}
	}
	f.sets = sync.OnceValue(func() *nibbles { return nibblesOf(f.grams) })
	return f
})

func foldGram(b []byte) uint32 { return binary.LittleEndian.Uint32(b) | 0x20202020 }

func place(g uint32) int { return int(g * 2654435761 >> (32 - 13)) }

func (f *filter) add(k keyword, format *Format) {
	w := k.text[k.offset : k.offset+gram]
	g := foldGram([]byte(w))
	for _, h := range []uint32{hash3(g), hash3(g >> 8)} {
		f.bits[h>>6] |= 1 << (h & 63)
	}
	for i := place(g); ; i = (i + 1) % tableSize {
		s := &f.table[i]
		if s.hits == nil {
			f.grams = append(f.grams, g)
		}
		if s.hits == nil || s.gram == g {
			s.gram = g
			s.hits = append(s.hits, hit{k.text, k.offset, k.fold, format})
			return
		}
	}
}

// hash3 is of the lower three bytes of g.
func hash3(g uint32) uint32 { return g << 8 * 2654435761 >> (32 - triple) }

func (f *filter) bit(h uint32) uint64 { return f.bits[h>>6] >> (h & 63) }

// vectorsFrom is how long a text must be to be looked through by vectors: what they need is not made for a short one.
const vectorsFrom = 4 << 10

// next is the first index from i on where the window of a keyword stands, with what it may be; len(b) for none. What it saw before it
// needed to is in a, which belongs to b and is empty at first.
func (f *filter) next(a *ahead, b []byte, i int) (int, []hit) {
	if haveVectors && len(b) >= vectorsFrom {
		for sets := f.sets(); ; {
			if i < a.from || i >= a.to {
				if a.look(sets, b, i); i == a.to {
					break
				}
			}
			if i = a.next(i); i == a.to {
				continue
			}
			if g := foldGram(b[i:]); f.bit(hash3(g))&f.bit(hash3(g>>8))&1 != 0 {
				if hits := f.at(b, i); hits != nil {
					return i, hits
				}
			}
			i++
		}
	}
	return f.plain(b, i)
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
	for p := place(g); f.table[p].hits != nil; p = (p + 1) % tableSize {
		if f.table[p].gram == g {
			return f.table[p].hits
		}
	}
	return nil
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
