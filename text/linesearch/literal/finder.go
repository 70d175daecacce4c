// Package literal searches bytes for fixed texts (needles): one or several at once, case-sensitive or not. [Required]
// derives from a regular expression a set of needles such that each match contains at least one.
package literal

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Needle is a text that is searched for before the regexp runs. newNeedle makes a Needle and sets rare; a searcher for
// several needles does not need it.
type Needle struct {
	Text string // in lower case if Fold is set
	Fold bool   // ASCII letters match either case; Text has no k or s: they also fold to U+212A, U+017F
	rare int    // index in Text of the rarest byte
}

func newNeedle(text string, fold bool) Needle {
	n := Needle{Text: text, Fold: fold}
	for i := range len(text) {
		if Frequency(text[i]) < Frequency(text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// equals reports whether b is the needle.
func (n *Needle) equals(b []byte) bool {
	return n.Fold && equalFold(b, n.Text) || !n.Fold && string(b) == n.Text
}

// Frequency ranks a byte by how often it occurs in prose, code and JSON: 0 is the rarest. It affects speed only.
func Frequency(b byte) int {
	const rank = "\x00~^`?!%&@#$;|+*[]<>\\{}ZQXJVYKWUBGHFMDNPLOICRATSEqzjx'()=/-_,.:vkw\"ybgpfmucdlhrsnioat\n0123456789e "
	if i := strings.IndexByte(rank, b); i >= 0 {
		return i
	}
	if b >= utf8.RuneSelf {
		return 10
	}
	return 0
}

// Finder searches one block for one needle, from left to right. It caches the last position found, so that no byte is
// searched twice. A Finder belongs to one goroutine. The caller must call Reset before each new block.
type Finder struct {
	Needle
	next   int // position of the needle at or after the last argument of Find; len(block) if there is none
	lo, hi int // with fold: next positions of the rarest byte in lower and upper case
}

// Reset clears the cached positions.
func (h *Finder) Reset() { h.next, h.lo, h.hi = -1, -1, -1 }

// Find returns the first position of the needle at or after from, or len(b).
func (h *Finder) Find(b []byte, from int) int {
	if h.next >= from {
		return h.next
	}
	if h.Fold {
		h.next = h.findFold(b, from)
	} else if i := bytes.Index(b[from:], []byte(h.Text)); i >= 0 {
		h.next = from + i
	} else {
		h.next = len(b)
	}
	return h.next
}

func (h *Finder) findFold(b []byte, from int) int {
	lower := h.Text[h.rare]
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
		if start := at - h.rare; at < len(b) && start+len(h.Text) <= len(b) && equalFold(b[start:start+len(h.Text)], h.Text) {
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

// equalFold compares b with a lower-case text of the same length; only ASCII letters fold.
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

// Finders search for any of several needles.
type Finders []Finder

// NewFinders returns a Finder for each needle, ready for the first block.
func NewFinders(ns []Needle) Finders {
	hs := make(Finders, len(ns))
	for i, n := range ns {
		hs[i].Needle = n
	}
	hs.Reset()
	return hs
}

// Reset must be called before each new block.
func (hs Finders) Reset() {
	for i := range hs {
		hs[i].Reset()
	}
}

// Find returns the start and end of the first needle at or after from; both are len(b) if there is none.
func (hs Finders) Find(b []byte, from int) (at, end int) {
	at, end = len(b), len(b)
	for i := range hs {
		if p := hs[i].Find(b, from); p < at {
			at, end = p, p+len(hs[i].Text)
		}
	}
	return at, end
}

// Longest returns the length of the longest needle in bytes.
func (hs Finders) Longest() int {
	n := 0
	for i := range hs {
		n = max(n, len(hs[i].Text))
	}
	return n
}

var newline = []byte{'\n'}
