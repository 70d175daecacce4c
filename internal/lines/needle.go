package lines

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A needle is a text that is looked for before the regexp is asked.
type needle struct {
	text string // in lower case with fold
	fold bool   // ASCII letters match either case; then no k and no s, which fold to U+212A and U+017F too
	rare int    // index of its rarest byte
}

func newNeedle(text string, fold bool) needle {
	n := needle{text: text, fold: fold}
	for i := range len(text) {
		if common(text[i]) < common(text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// is says whether b is the needle.
func (n *needle) is(b []byte) bool {
	return n.fold && equalFold(b, n.text) || !n.fold && string(b) == n.text
}

// common ranks bytes by how often they stand in prose, code and JSON: 0 is rare. Only speed hangs on it.
func common(b byte) int {
	const rank = "\x00~^`?!%&@#$;|+*[]<>\\{}ZQXJVYKWUBGHFMDNPLOICRATSEqzjx'()=/-_,.:vkw\"ybgpfmucdlhrsnioat\n0123456789e "
	if i := strings.IndexByte(rank, b); i >= 0 {
		return i
	}
	if b >= utf8.RuneSelf {
		return 10
	}
	return 0
}

// hunt looks for one needle in one block, from left to right, and remembers
// what it has seen, so that no byte is looked at twice for it.
type hunt struct {
	needle
	next   int // the next place of the needle at or after what was asked last; none: len(block)
	lo, hi int // with fold: next places of the rare byte in either case
}

func (h *hunt) reset() { h.next, h.lo, h.hi = -1, -1, -1 }

// find returns the first place of the needle at or after from, else len(b).
func (h *hunt) find(b []byte, from int) int {
	if h.next >= from {
		return h.next
	}
	if h.fold {
		h.next = h.findFold(b, from)
	} else if i := bytes.Index(b[from:], []byte(h.text)); i >= 0 {
		h.next = from + i
	} else {
		h.next = len(b)
	}
	return h.next
}

func (h *hunt) findFold(b []byte, from int) int {
	lower := h.text[h.rare]
	upper := byte(unicode.ToUpper(rune(lower)))
	for at := from + h.rare; at < len(b); at++ {
		if h.lo < at {
			h.lo = indexFrom(b, lower, at)
		}
		if h.hi < at {
			h.hi = h.lo
			if upper != lower {
				h.hi = indexFrom(b, upper, at)
			}
		}
		at = min(h.lo, h.hi)
		if start := at - h.rare; at < len(b) && start+len(h.text) <= len(b) && equalFold(b[start:start+len(h.text)], h.text) {
			return start
		}
	}
	return len(b)
}

func indexFrom(b []byte, c byte, from int) int {
	if i := bytes.IndexByte(b[from:], c); i >= 0 {
		return from + i
	}
	return len(b)
}

// equalFold compares with a text in lower case; only ASCII letters fold.
func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// May is false where neither the text nor any part of it can match. It looks at the literals alone, and is many times
// as fast as [Matcher.Find] on a text that holds none of them.
func (m *Matcher) May(text []byte) bool {
	for _, n := range m.needles {
		h := hunt{needle: n}
		h.reset()
		if h.find(text, 0) < len(text) {
			return true
		}
	}
	return m.multi || len(m.needles) == 0 // a \r\n that is read as \n may stand where a literal has one
}

// hunts look for any of several needles.
type hunts []hunt

func newHunts(ns []needle) hunts {
	hs := make(hunts, len(ns))
	for i, n := range ns {
		hs[i].needle = n
	}
	hs.reset()
	return hs
}

func (hs hunts) reset() {
	for i := range hs {
		hs[i].reset()
	}
}

// find returns the first place of any needle at or after from, and its end; len(b) where there is none.
func (hs hunts) find(b []byte, from int) (at, end int) {
	at, end = len(b), len(b)
	for i := range hs {
		if p := hs[i].find(b, from); p < at {
			at, end = p, p+len(hs[i].text)
		}
	}
	return at, end
}

// longest is the length of the longest needle.
func (hs hunts) longest() int {
	n := 0
	for i := range hs {
		n = max(n, len(hs[i].text))
	}
	return n
}
