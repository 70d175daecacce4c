package literal

import "slices"

// AhoCorasick finds any of many texts in one pass, by a complete table of transitions (Aho and Corasick 1975). Its
// time does not depend on the number of texts. The rows "grep: a list of … words" of docs/SPEED.md need it. It is safe
// for concurrent use.
type AhoCorasick struct {
	class [256]uint8 // column of each byte; 0: no text has the byte
	width int        // entries of a row: its columns, and the three numbers below
	// A state is the index of its row. An entry is the next state, with the bit hit if a text ends there.
	next []uint32
	same []uint32 // by text: 1 + the next text with equal bytes; 0: none
	size []int    // by text: its length

	longest int // the largest of size
}

const (
	hit = 1 << 31

	// The last numbers of a row.
	depth = 1 // bytes from the root to the state
	shelf = 2 // the next shorter state at which a text ends; 0: none
	ended = 3 // 1 + the first text that ends at the state; 0: none
)

// maxEntries bounds the table to 32 MB.
const maxEntries = 8 << 20

// NewAhoCorasick returns nil if the table would take more than 32 MB, or if the texts have over 250 different bytes. No
// text may be empty. In the searched bytes, each key of alike counts as its value.
func NewAhoCorasick(texts []string, alike map[byte]byte) *AhoCorasick {
	a := &AhoCorasick{same: make([]uint32, len(texts)), size: make([]int, len(texts))}
	columns := 1
	for _, t := range texts {
		for i := range len(t) {
			if a.class[t[i]] == 0 {
				a.class[t[i]] = uint8(columns)
				columns++
			}
		}
		if columns > 250 {
			return nil
		}
	}
	for c, as := range alike {
		a.class[c] = a.class[as]
	}
	a.width = columns + ended
	n := a.width * (1 + countStates(texts))
	if n > maxEntries {
		return nil
	}
	a.next = make([]uint32, a.width, n)
	for i, t := range texts {
		a.size[i] = len(t)
		a.longest = max(a.longest, len(t))
		a.insert(t, uint32(i+1))
	}
	a.complete(columns)
	return a
}

// countStates returns the number of different beginnings of the texts.
func countStates(texts []string) (n int) {
	before := ""
	for _, t := range slices.Sorted(slices.Values(texts)) {
		n += len(t)
		for i := 0; i < min(len(t), len(before)) && t[i] == before[i]; i++ {
			n--
		}
		before = t
	}
	return n
}

// insert adds the states of a text.
func (a *AhoCorasick) insert(t string, id uint32) {
	s := 0
	for i := range len(t) {
		to := s + int(a.class[t[i]])
		if a.next[to] == 0 {
			a.next[to] = uint32(len(a.next))
			a.next = append(a.next, make([]uint32, a.width)...)
			a.next[len(a.next)-depth] = uint32(i + 1)
		}
		s = int(a.next[to])
	}
	last := &a.next[s+a.width-ended]
	for *last != 0 {
		last = &a.same[*last-1]
	}
	*last = id
}

// complete fills in the transitions from each state by the bytes with which no text continues: they are those of the
// longest shorter state, which it visits before.
func (a *AhoCorasick) complete(columns int) {
	queue := make([]int, 1, len(a.next)/a.width)
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		link := &a.next[s+a.width-shelf] // until here the longest shorter state, whether a text ends there or not
		shorter := int(*link)
		if a.next[shorter+a.width-ended] == 0 {
			*link = a.next[shorter+a.width-shelf]
		}
		for c := range columns {
			to := &a.next[s+c]
			child := int(*to)
			after := uint32(0)
			if s != 0 {
				after = a.next[shorter+c]
			}
			if child == 0 {
				*to = after
				continue
			}
			queue = append(queue, child)
			a.next[child+a.width-shelf] = after &^ hit
			if after&hit != 0 || a.next[child+a.width-ended] != 0 {
				*to |= hit
			}
		}
	}
}

// First returns the leftmost text in b[from:] that accept accepts, of several at one position the first in the list;
// text is -1 and start is len(b) if there is none. A nil accept accepts all.
func (a *AhoCorasick) First(b []byte, from int, accept func(text, start, end int) bool) (text, start, end int) {
	text, start, end = -1, len(b), len(b)
	next, s := a.next, uint32(0)
	for i := from; i < len(b); i++ {
		s = next[s+uint32(a.class[b[i]])]
		if s < hit && text < 0 {
			continue
		}
		if s >= hit {
			s &^= hit
			for q := int(s); q != 0; q = int(next[q+a.width-shelf]) {
				for id := next[q+a.width-ended]; id != 0; id = a.same[id-1] {
					t := int(id - 1)
					at := i + 1 - a.size[t]
					if (at < start || at == start && t < text) && (accept == nil || accept(t, at, i+1)) {
						text, start, end = t, at, i+1
					}
				}
			}
		}
		if text >= 0 && i+1-int(next[int(s)+a.width-depth]) > start { // no text in progress starts as early
			break
		}
	}
	return text, start, end
}

// lanes is the number of parts of a text that Ends searches in lockstep: each waits for its own table entry.
const lanes = 4

// Ends appends the positions after all texts in b, in order. If several texts end at one position, it is one.
func (a *AhoCorasick) Ends(b []byte, ends []uint32) []uint32 {
	const short = 4 << 10
	overlap := a.longest - 1 // a lane begins this many bytes early
	if len(b) < max(short, 2*lanes*overlap) {
		return a.endsFrom(b, 0, 0, ends)
	}
	n := len(b) / lanes
	next, class := a.next, &a.class
	var found [lanes][]uint32
	b0, b1, b2, b3 := b[:n], b[n-overlap:][:n], b[2*n-overlap:][:n], b[3*n-overlap:][:n]
	s0, s1, s2, s3 := uint32(0), uint32(0), uint32(0), uint32(0)
	for i := range b0 {
		s0 = next[s0+uint32(class[b0[i]])]
		s1 = next[s1+uint32(class[b1[i]])]
		s2 = next[s2+uint32(class[b2[i]])]
		s3 = next[s3+uint32(class[b3[i]])]
		if s0|s1|s2|s3 < hit {
			continue
		}
		for k, s := range [lanes]*uint32{&s0, &s1, &s2, &s3} {
			if *s >= hit {
				*s &^= hit
				if k == 0 || i >= overlap {
					found[k] = append(found[k], uint32(k*n-min(k, 1)*overlap+i+1))
				}
			}
		}
	}
	ends = append(ends, found[0]...)
	for k, s := range [lanes - 1]uint32{s1, s2, s3} {
		to := (k + 2) * n
		if k == lanes-2 {
			to = len(b)
		}
		ends = append(ends, found[k+1]...)
		ends = a.endsFrom(b[:to], (k+2)*n-overlap, s, ends)
	}
	return ends
}

// endsFrom is Ends in b[from:], from state s, in one lane.
func (a *AhoCorasick) endsFrom(b []byte, from int, s uint32, ends []uint32) []uint32 {
	for i := from; i < len(b); i++ {
		if s = a.next[s+uint32(a.class[b[i]])]; s >= hit {
			s &^= hit
			ends = append(ends, uint32(i+1))
		}
	}
	return ends
}

// Size returns the size of the table in bytes.
func (a *AhoCorasick) Size() int { return 4 * len(a.next) }
