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
	switch {
	case t == nil:
		return nil
	case len(ns) == 1:
		one := newPair(ns[0])
		return func() Searcher { mine := *one; return &mine }
	}
	return func() Searcher { return t }
}

// teddy searches for several needles at once by three adjacent bytes of each, 32 positions at a time (the algorithm
// of Hyperscan). Needles are grouped in 8 buckets. For each of the three bytes, two tables (by its low and its high
// half) hold a bit set of the buckets that allow the byte. If all six tables share a bucket at a position, Find
// compares the needles of that bucket.
type teddy struct {
	nibbles nibbles
	buckets [8][]teddyNeedle
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

// newTeddyNeedle chooses the three bytes of a needle.
func newTeddyNeedle(n Needle) teddyNeedle {
	x := teddyNeedle{Needle: n, at: rarestThree(n.Text)}
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
		all = append(all, newBucket(n))
	}
	t := &teddy{}
	for i, b := range merge(all, len(t.buckets)) {
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
	return t
}

// bucket is a set of needles, with the halves of bytes that it allows: a bit set for each table of nibbles.
type bucket struct {
	needles []teddyNeedle
	allowed [6]uint16
}

// newBucket returns a bucket for one needle.
func newBucket(n Needle) (b bucket) {
	x := newTeddyNeedle(n)
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
	}
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
