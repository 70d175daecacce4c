package literal

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
)

// The vectors of this package are needed to meet the rows "grep: 200 MB, …" with literals of docs/SPEED.md.

// Searcher finds needles with vectors. A Searcher belongs to one goroutine.
type Searcher interface {
	// Find returns the start and end of the first needle in b[from:], and the number of newlines between from and the
	// needle; if there is no needle, at is len(b) and lines counts the newlines of b[from:]. b must end with a newline,
	// and from must be the start of a line. If a line holds several needles, Find may return any of them.
	Find(b []byte, from int) (at, end, lines int)
}

// NewSearcher returns a function that makes searchers for the needles; nil if the processor has no AVX2 or a needle has
// only one byte.
func NewSearcher(ns []Needle) func() Searcher {
	t := newTeddy(ns)
	if t == nil {
		return nil
	}
	return func() Searcher { mine := *t; return &mine }
}

// teddy searches for several needles at once by three adjacent bytes of each, 32 positions at a time (the algorithm
// of Hyperscan). Needles are grouped in 8 buckets. For each of the three bytes, two tables (by its low and its high
// half) hold a bit set of the buckets that allow the byte. If all six tables share a bucket at a position, Find
// compares the needles of that bucket.
type teddy struct {
	nibbles nibbles
	buckets [8][]teddyNeedle

	// The rest is for one needle, see recordMiss.
	one      bool
	misses   int // since position since of the block
	since    int
	replaced int // number of times other bytes were chosen
}

// nibbles holds two tables for each of three bytes: one by the low half of the byte, one by the high half. Each table
// is stored twice, because an AVX2 shuffle looks up 16 bytes in each half of a vector.
type nibbles [6][32]byte

// teddyNeedle is a needle with the offset of its three bytes.
type teddyNeedle struct {
	Needle
	at                int
	three, mask, fold uint32 // the bytes, the bits that count, and the bits of case
}

// newTeddyNeedle returns a needle that is found by the three bytes at an offset.
func newTeddyNeedle(n Needle, at int) teddyNeedle {
	x := teddyNeedle{Needle: n, at: at}
	for k := 0; k < 3 && x.at+k < len(n.Text); k++ {
		c := n.Text[x.at+k]
		x.three |= uint32(c) << (8 * k)
		x.mask |= 0xff << (8 * k)
		x.fold |= uint32(n.caseBit(c)) << (8 * k)
	}
	return x
}

// newTeddy returns nil without AVX2, and if a needle has only one byte, for which bytes.IndexByte is faster. No needle
// may contain a newline.
func newTeddy(ns []Needle) *teddy {
	if !haveTeddy || len(ns) == 0 {
		return nil
	}
	var all []bucket
	for _, n := range ns {
		if len(n.Text) < 2 {
			return nil
		}
		all = append(all, newBucket(newTeddyNeedle(n, rarestThree(n.Text))))
	}
	t := &teddy{one: len(ns) == 1}
	t.fill(merge(all, len(t.buckets)))
	return t
}

// fill sets the buckets, and makes their tables.
func (t *teddy) fill(all []bucket) {
	t.nibbles = nibbles{}
	for i, b := range all {
		t.buckets[i] = b.needles
		for k := range t.nibbles {
			for half := range 16 {
				if b.allowed[k]>>half&1 != 0 {
					t.nibbles[k][half] |= 1 << i
					t.nibbles[k][16+half] |= 1 << i
				}
			}
		}
	}
}

// bucket is a set of needles, with the halves of bytes that it allows: a bit set for each table of nibbles.
type bucket struct {
	needles []teddyNeedle
	allowed [6]uint16
}

// newBucket returns a bucket for one needle.
func newBucket(x teddyNeedle) (b bucket) {
	b.needles = []teddyNeedle{x}
	for k := range 3 {
		if x.mask>>(8*k)&0xff == 0 { // a needle of two bytes allows any third byte
			b.allowed[2*k], b.allowed[2*k+1] = 0xffff, 0xffff
			continue
		}
		c := byte(x.three >> (8 * k))
		for _, c := range []byte{c, c &^ byte(x.fold>>(8*k))} {
			b.allowed[2*k] |= 1 << (c & 0x0f)
			b.allowed[2*k+1] |= 1 << (c >> 4)
		}
	}
	return b
}

// with returns what both buckets together allow, and of how many combinations of halves.
func (b *bucket) with(o *bucket) (allowed [6]uint16, combinations int) {
	combinations = 1
	for k := range allowed {
		allowed[k] = b.allowed[k] | o.allowed[k]
		combinations *= bits.OnesCount16(allowed[k])
	}
	return allowed, combinations
}

// merge merges buckets until there are at most n, each time the two that then allow the fewest other combinations: with
// 50 needles, this leaves a quarter of the places at which a needle must be compared.
func merge(all []bucket, n int) []bucket {
	for len(all) > n {
		least, to, from := math.MaxInt, 0, 0
		for i := range all {
			_, one := all[i].with(&all[i])
			for j := range all[:i] {
				_, other := all[j].with(&all[j])
				if _, both := all[i].with(&all[j]); both-one-other < least {
					least, to, from = both-one-other, j, i
				}
			}
		}
		all[to].allowed, _ = all[to].with(&all[from])
		all[to].needles = append(all[to].needles, all[from].needles...)
		all = slices.Delete(all, from, from+1)
	}
	return all
}

// rarestThree returns the offset of the three adjacent bytes that are rarest together.
func rarestThree(text string) (at int) {
	least := 1 << 20
	for i := 0; i == 0 || i+3 <= len(text); i++ {
		n := 0
		for k := i; k < min(i+3, len(text)); k++ {
			n += Frequency(text[k])
		}
		if n < least {
			at, least = i, n
		}
	}
	return at
}

// Find implements [Searcher].
func (t *teddy) Find(b []byte, from int) (at, end, lines int) {
	for i := from; ; i++ {
		next, passed := t.next(b, i)
		if i, lines = next, lines+passed; i == len(b) {
			return i, i, lines
		}
		three := uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16
		for buckets := t.nibbles.at(b[i:]); buckets != 0; buckets &= buckets - 1 {
			bucket := t.buckets[bits.TrailingZeros8(buckets)]
			for k := range bucket {
				n := &bucket[k]
				if (three|n.fold)&n.mask != n.three {
					continue
				}
				at, end = i-n.at, i-n.at+len(n.Text)
				if at >= from && end <= len(b) && n.equals(b[at:end]) {
					return at, end, lines
				}
			}
		}
		if b[i] == '\n' {
			lines++
		}
		if t.one {
			again := max(from, i+1-t.recordMiss(b, i))
			lines -= bytes.Count(b[again:i+1], newline)
			i = again - 1
		}
	}
}

// Other bytes are chosen after maxMisses misses within missBytes bytes, and at most maxReplaced times.
const (
	maxMisses   = 32
	missBytes   = maxMisses * 1024 // a miss costs as much as 500 bytes of search
	maxReplaced = 16
)

// recordMiss counts a miss: the three bytes of the only needle matched at position at of b, but the needle did not. If
// misses are dense, recordMiss chooses three bytes of which one differs from b there, because bytes that are rare in
// most texts may occur in each line of this text. It returns the number of positions, the last of them at, at which
// these bytes of a needle may be that begins after the miss.
func (t *teddy) recordMiss(b []byte, at int) (again int) {
	if at < t.since { // b is a new block
		t.misses, t.since = 0, at
	}
	if t.misses++; t.misses < maxMisses || t.replaced == maxReplaced {
		return 0
	}
	dense := at-t.since < missBytes
	t.misses, t.since = 0, at
	if !dense {
		return 0
	}
	n := t.buckets[0][0]
	differs := -1 // index in the needle of the rarest byte that differs
	for i := range len(n.Text) {
		c, k := n.Text[i], at-n.at+i
		if k >= 0 && k < len(b) && b[k]|n.caseBit(c) != c && (differs < 0 || Frequency(c) < Frequency(n.Text[differs])) {
			differs = i
		}
	}
	if differs < 0 {
		return 0
	}
	t.replaced++
	x := newTeddyNeedle(n.Needle, max(0, min(differs-1, len(n.Text)-3)))
	t.fill([]bucket{newBucket(x)})
	return max(0, n.at-x.at)
}

// next returns the first position at or after from at which all tables share a bucket, or len(b), and the number of
// newlines before that position.
func (t *teddy) next(b []byte, from int) (at, lines int) {
	if n := len(b) - 2 - from; n >= 32 {
		at, lines = teddyNext(&b[from], n, &t.nibbles)
		if at >= 0 {
			return from + at, lines
		}
		from += n &^ 31
	}
	at = t.nibbles.next(b, from)
	return at, lines + bytes.Count(b[from:at], newline)
}

// next is teddyNext without vectors. It also searches the last bytes of a block, which are too few for vectors.
func (t *nibbles) next(b []byte, from int) int {
	for i := from; i+2 < len(b); i++ {
		if t.at(b[i:]) != 0 {
			return i
		}
	}
	return len(b)
}

// at returns the buckets that allow the first three bytes of b.
func (t *nibbles) at(b []byte) byte {
	return t[0][b[0]&0x0f] & t[1][b[0]>>4] & t[2][b[1]&0x0f] & t[3][b[1]>>4] & t[4][b[2]&0x0f] & t[5][b[2]>>4]
}

// caseBit returns the bit in which a matching byte may differ from byte c of the needle: 0x20 if c folds, else 0.
func (n *Needle) caseBit(c byte) byte {
	if n.Fold && 'a' <= c && c <= 'z' {
		return 0x20
	}
	return 0
}

// Texts searches for any of several texts of at least three bytes, with vectors if the processor has them. It is safe
// for concurrent use.
type Texts struct {
	texts []string
	by    *teddy // nil: no vectors
}

// NewTexts prepares a search for texts.
func NewTexts(texts ...string) *Texts {
	return &Texts{texts, newTeddy(NewNeedles(texts, false))}
}

// In reports whether b holds one of the texts.
func (t *Texts) In(b []byte) bool {
	if t.by == nil {
		return slices.ContainsFunc(t.texts, func(text string) bool { return bytes.Contains(b, []byte(text)) })
	}
	by := *t.by // a copy: Find changes it
	at, _, _ := by.Find(b, 0)
	return at < len(b)
}
