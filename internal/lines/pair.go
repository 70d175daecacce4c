package lines

import "bytes"

// pair looks for one needle by two of its bytes: the rarest, as long as nothing is known of the text.
type pair struct {
	needle
	first, second int // places of the bytes in the needle

	wrong int  // places at which both bytes stood, and not the needle, since …
	since int  // … this place of the block
	moves int  // how often other bytes were taken
	turn  bool // the first goes next
}

// newPair is for a needle of two bytes or more.
func newPair(n needle) *pair {
	other := -1
	for i := range len(n.text) {
		if i != n.rare && (other < 0 || common(n.text[i]) < common(n.text[other])) {
			other = i
		}
	}
	return &pair{needle: n, first: n.rare, second: other}
}

// find is [seeker.find].
func (p *pair) find(b []byte, from int) (at, end, lines int) {
	for at = from; ; at++ {
		next, passed := p.next(b, at)
		if at, lines = next, lines+passed; at == len(b) {
			return at, at, lines
		}
		if end = at + len(p.text); p.is(b[at:end]) {
			return at, end, lines
		}
		p.missed(b, at)
		if b[at] == '\n' {
			lines++
		}
	}
}

// next is the first place at or after from at which the needle may start, else len(b), and the newlines from there to it.
func (p *pair) next(b []byte, from int) (at, lines int) {
	if n := len(b) - len(p.text) + 1 - from; n >= 64 {
		x, y := p.text[p.first], p.text[p.second]
		at, lines = pairNext(&b[from], n, p.first, p.second, x, y, p.caseOf(x), p.caseOf(y))
		if at >= 0 {
			return from + at, lines
		}
		from += n &^ 63
	}
	at = p.plain(b, from)
	return at, lines + bytes.Count(b[from:at], newline)
}

// plain is what pairNext does, and for the rest of a text that is too short for it.
func (p *pair) plain(b []byte, from int) int {
	x, y := p.text[p.first], p.text[p.second]
	foldX, foldY := p.caseOf(x), p.caseOf(y)
	for i := from; i+len(p.text) <= len(b); i++ {
		if b[i+p.first]|foldX == x && b[i+p.second]|foldY == y {
			return i
		}
	}
	return len(b)
}

// caseOf is the bit in which a byte of the needle may differ from that of the text.
func (n *needle) caseOf(c byte) byte {
	if n.fold && 'a' <= c && c <= 'z' {
		return 0x20
	}
	return 0
}

// How many places may prove wrong in how many bytes before other bytes are looked for, and how often that is done.
const (
	wrongMany  = 32
	wrongBytes = wrongMany * 1024 // a wrong place costs what 500 bytes cost
	movesMost  = 16
)

// missed learns from a place of b at which both bytes stood, but not the needle: where that is so time and again, one of the two gives way
// to a byte that differed. What is rare in all texts may stand in every line of this one.
func (p *pair) missed(b []byte, at int) {
	if at < p.since { // another block
		p.wrong, p.since = 0, at
	}
	if p.wrong++; p.wrong < wrongMany || p.moves == movesMost {
		return
	}
	dense := at-p.since < wrongBytes
	p.wrong, p.since = 0, at
	if !dense {
		return
	}
	differs := -1 // some byte does, or it would be the needle, unless the text has changed meanwhile
	for i := range len(p.text) {
		c := p.text[i]
		if b[at+i]|p.caseOf(c) != c && (differs < 0 || common(c) < common(p.text[differs])) {
			differs = i
		}
	}
	if differs < 0 {
		return
	}
	if p.turn {
		p.first = differs
	} else {
		p.second = differs
	}
	p.turn, p.moves = !p.turn, p.moves+1
}
