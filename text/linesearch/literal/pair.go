package literal

import "bytes"

// pair searches for one needle by two of its bytes: initially the two rarest, later others, see recordMiss.
type pair struct {
	Needle
	first, second int // offsets of the two bytes in the needle

	misses       int  // number of misses since position since, see recordMiss
	since        int  // position in the block
	replaced     int  // number of times a byte was replaced
	replaceFirst bool // the next miss replaces first, else second
}

// newPair returns a pair for a needle of at least two bytes.
func newPair(n Needle) *pair {
	other := -1
	for i := range len(n.Text) {
		if i != n.rare && (other < 0 || Frequency(n.Text[i]) < Frequency(n.Text[other])) {
			other = i
		}
	}
	return &pair{Needle: n, first: n.rare, second: other}
}

// Find implements [Searcher].
func (p *pair) Find(b []byte, from int) (at, end, lines int) {
	for at = from; ; at++ {
		next, passed := p.next(b, at)
		if at, lines = next, lines+passed; at == len(b) {
			return at, at, lines
		}
		if end = at + len(p.Text); p.equals(b[at:end]) {
			return at, end, lines
		}
		p.recordMiss(b, at)
		if b[at] == '\n' {
			lines++
		}
	}
}

// next returns the first position at or after from at which both bytes match, or len(b), and the number of newlines
// before that position.
func (p *pair) next(b []byte, from int) (at, lines int) {
	if n := len(b) - len(p.Text) + 1 - from; n >= 64 {
		x, y := p.Text[p.first], p.Text[p.second]
		at, lines = pairNext(&b[from], n, p.first, p.second, x, y, p.caseBit(x), p.caseBit(y))
		if at >= 0 {
			return from + at, lines
		}
		from += n &^ 63
	}
	at = p.nextScalar(b, from)
	return at, lines + bytes.Count(b[from:at], newline)
}

// nextScalar is pairNext without vectors. It also searches the last bytes of a block, which are too few for vectors.
func (p *pair) nextScalar(b []byte, from int) int {
	x, y := p.Text[p.first], p.Text[p.second]
	foldX, foldY := p.caseBit(x), p.caseBit(y)
	for i := from; i+len(p.Text) <= len(b); i++ {
		if b[i+p.first]|foldX == x && b[i+p.second]|foldY == y {
			return i
		}
	}
	return len(b)
}

// caseBit returns the bit in which a matching byte may differ from byte c of the needle: 0x20 if c folds, else 0.
func (n *Needle) caseBit(c byte) byte {
	if n.Fold && 'a' <= c && c <= 'z' {
		return 0x20
	}
	return 0
}

// A byte is replaced after maxMisses misses within missBytes bytes, and at most maxReplaced times.
const (
	maxMisses   = 32
	missBytes   = maxMisses * 1024 // a miss costs as much as 500 bytes of search
	maxReplaced = 16
)

// recordMiss counts a miss: both bytes matched at position at of b, but the needle did not. If misses are dense,
// recordMiss replaces one of the two bytes by a byte of the needle that differs from b there, because a byte that is
// rare in most texts may occur in each line of this text.
func (p *pair) recordMiss(b []byte, at int) {
	if at < p.since { // b is a new block
		p.misses, p.since = 0, at
	}
	if p.misses++; p.misses < maxMisses || p.replaced == maxReplaced {
		return
	}
	dense := at-p.since < missBytes
	p.misses, p.since = 0, at
	if !dense {
		return
	}
	differs := -1 // index in the needle; -1 only if the text has changed since the comparison
	for i := range len(p.Text) {
		c := p.Text[i]
		if b[at+i]|p.caseBit(c) != c && (differs < 0 || Frequency(c) < Frequency(p.Text[differs])) {
			differs = i
		}
	}
	if differs < 0 {
		return
	}
	if p.replaceFirst {
		p.first = differs
	} else {
		p.second = differs
	}
	p.replaceFirst, p.replaced = !p.replaceFirst, p.replaced+1
}

// Text searches for a text of at least two bytes, with vectors if the processor has them. It is safe for concurrent
// use.
type Text struct{ search *pair }

// NewText prepares a search for text.
func NewText(text string) *Text {
	return &Text{newPair(newNeedle(text, false))}
}

// In reports whether b holds the text.
func (l *Text) In(b []byte) bool {
	if !haveTeddy {
		return bytes.Contains(b, []byte(l.search.Text))
	}
	by := *l.search // a copy: Find changes it
	at, _, _ := by.Find(b, 0)
	return at < len(b)
}
