package continuation

import (
	"bytes"
	"unicode/utf8"
)

const (
	// restartMin is the least number of characters of a restart text, without white space.
	restartMin = 16
	// restartMax is the length in bytes up to which a restart text begins with an element of the reported array; a
	// longer one begins further inside.
	restartMax = 600
	// longString is the number of characters from which on a string is continued from its last words.
	longString = 200
	// tailMin and tailMax bound the last words of such a string, in characters.
	tailMin, tailMax = 80, 160
)

// anchor is the place from which the next part goes on, and the element that is reported.
type anchor struct {
	at     int64 // offset of the restart text
	end    int64 // end of the restart text: the end of the text without an incomplete character
	inside bool  // the restart text begins inside of a string

	depth     int   // of the frame whose child is reported
	piece     int64 // offset of the cut-off element
	last      int64 // offset of the last complete element; −1: none
	lastUntil int64
}

// restart returns the text that the next part must begin with.
func (d *Document) restart() string {
	return string(d.text[d.anchor.at:d.anchor.end])
}

// reported returns the depth of the frame whose child is reported as cut off: the innermost open array, or the array
// that holds it if its elements are arrays themselves; else the innermost object.
func (p *parser) reported() int {
	for depth := len(p.frames) - 1; depth > 0; depth-- {
		if p.frames[depth].Object {
			continue
		}
		for depth > 1 && !p.frames[depth-1].Object {
			depth--
		}
		return depth
	}
	if p.frames[0].Count > 0 {
		return 0 // a line of NDJSON
	}
	return len(p.frames) - 1
}

// findAnchor chooses the restart text of a text that is cut off.
func (d *Document) findAnchor() anchor {
	p := d.parser
	a := anchor{depth: p.reported(), last: -1}
	inside := p.scan.Inside()
	within := inside == "string" || inside == "key"
	a.end = int64(len(d.text))
	if within {
		a.end = int64(complete(d.text, true))
	}
	a.end = int64(len(bytes.TrimRight(d.text[:a.end], " \t\r\n")))
	f := &p.frames[a.depth]
	a.piece = int64(len(d.text))
	if f.Open >= 0 {
		a.piece = f.Open
	}
	if n := len(f.Last); n > 0 {
		a.last, a.lastUntil = f.Last[n-1], f.End
	}
	if inside == "string" && utf8.RuneCount(d.text[p.value:a.end]) > longString {
		if at := d.lastWords(p.value+1, a.end); at >= 0 {
			a.at, a.inside = at, true
			return a
		}
	}
	a.at = d.elementAnchor(a)
	return a
}

// lastWords returns where the last words of a string begin, which occur once in the text; −1 if they don't.
func (d *Document) lastWords(from, end int64) int64 {
	for _, most := range []int64{tailMax, 2 * tailMax, 4 * tailMax, 8 * tailMax} {
		at := d.wordStart(max(from, end-most), end-tailMin)
		if at < 0 {
			continue
		}
		if t := d.text[at:end]; nonBlank(t) >= restartMin && bytes.Count(d.text, t) == 1 &&
			d.options.AsShown(string(t)) {
			return at
		}
	}
	return -1
}

// wordStart returns the first place in [from, to) of the inside of a string where a word begins; −1 if there is none.
// Text without blanks has words of one character.
func (d *Document) wordStart(from, to int64) int64 {
	first := int64(-1)
	for i := from; i < to; i++ {
		c := d.text[i]
		if !utf8.RuneStart(c) || c == ' ' || !d.outsideEscape(i) {
			continue
		}
		if d.text[i-1] == ' ' {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// outsideEscape reports whether no escape can reach over the byte at i.
func (d *Document) outsideEscape(i int64) bool {
	return bytes.IndexByte(d.text[max(0, i-12):i+1], '\\') < 0
}

// elementAnchor returns where an element begins whose text up to the end is long enough and occurs once: the cut-off
// element or one before it. If these are too long, an element further inside is taken.
func (d *Document) elementAnchor(a anchor) int64 {
	p := d.parser
	depths := []int{a.depth}
	for depth := len(p.frames) - 1; depth > a.depth; depth-- {
		depths = append(depths, depth)
	}
	for depth := a.depth - 1; depth >= 0; depth-- {
		depths = append(depths, depth)
	}
	fallback := int64(0)
	for _, depth := range depths {
		f := &p.frames[depth]
		starts := f.Last
		if f.Open >= 0 {
			starts = append(starts[:len(starts):len(starts)], f.Open)
		}
		at, found := d.lastUnique(starts, a.end)
		if found && a.end-at <= restartMax {
			return at
		}
		fallback = max(fallback, at)
	}
	if at, found := d.lastUnique(p.recent, a.end); found {
		return at
	}
	return fallback
}

// lastUnique returns the last of some offsets from which the text up to the end is long enough and occurs once.
func (d *Document) lastUnique(starts []int64, end int64) (int64, bool) {
	for i := len(starts) - 1; i >= 0 && i >= len(starts)-storedStarts; i-- {
		t := d.text[starts[i]:max(end, starts[i])]
		if nonBlank(t) >= restartMin && bytes.Count(d.text, t) == 1 && d.options.AsShown(string(t)) {
			return starts[i], true
		}
	}
	return 0, false
}

// nonBlank counts characters that are not white space.
func nonBlank(t []byte) int {
	n := 0
	for _, c := range t {
		if c > ' ' && utf8.RuneStart(c) {
			n++
		}
	}
	return n
}
