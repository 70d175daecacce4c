package continuation

import (
	"bytes"
	"math"
	"unicode/utf8"
)

const (
	// restartMin is the least number of characters of a restart text, without white space.
	restartMin = 16
	// restartMax is the length in bytes up to which a restart text begins with an element; where all of them are longer,
	// it begins inside of a string.
	restartMax = 300
	// longString is the number of characters from which on a string is continued from its last words.
	longString = 200
	// tailMin and tailMax bound the last words of such a string, in characters.
	tailMin, tailMax = 80, 150
	// triedLevels is the number of innermost levels, and of levels around the reported element, where a restart text is
	// looked for: each one costs a reading of the text behind it.
	triedLevels = 64
	// secretContext is how many bytes before a text may say that it is a secret: a name, the head of a key.
	secretContext = 4 << 10
)

// anchor is the place from which the next part goes on, and the element that is reported.
type anchor struct {
	at     int64 // offset of the restart text
	end    int64 // end of the restart text: the end of the text without an incomplete character
	inside bool  // the restart text begins inside of a string
	hidden bool  // the restart text is masked or escaped where it is shown: no other was found

	depth     int   // of the container whose child is reported
	piece     int64 // offset of the cut-off element
	last      int64 // offset of the last complete element; −1: none
	lastUntil int64
}

// reported returns the depth of the container whose child is reported as cut off: the innermost open array, or the
// array that holds it if its elements are arrays themselves; else the innermost object.
func (p *parser) reported() int {
	for depth := len(p.containers) - 1; depth > 0; depth-- {
		if p.containers[depth].Object {
			continue
		}
		for depth > 1 && !p.containers[depth-1].Object {
			depth--
		}
		return depth
	}
	if p.containers[0].Count > 0 {
		return 0 // a line of NDJSON
	}
	return len(p.containers) - 1
}

// findAnchor chooses the restart text of a text that is cut off.
func (d *Document) findAnchor() anchor {
	p := d.parser
	d.once, d.again = math.MaxInt, 0
	a := anchor{depth: p.reported(), last: -1}
	a.end = int64(len(d.text))
	if d.insideString() {
		a.end = int64(complete(d.text, true))
	}
	a.end = int64(len(bytes.TrimRight(d.text[:a.end], " \t\r\n")))
	f := &p.containers[a.depth]
	a.piece = int64(len(d.text))
	if f.Open >= 0 {
		a.piece = f.Open
	}
	if n := len(f.Last); n > 0 {
		a.last, a.lastUntil = f.Last[n-1], f.End
	}
	if p.scan.Inside() == "string" && utf8.RuneCount(d.text[p.value:a.end]) > longString {
		if at := d.lastWords(p.value+1, a.end, a.end, 8*tailMax); at >= 0 {
			a.at, a.inside = at, true
			return a
		}
	}
	a.at, a.inside = d.elementAnchor(a)
	a.hidden = !d.shown(a.at, a.end)
	return a
}

// shown reports whether a range of the text is shown as it is.
func (d *Document) shown(at, end int64) bool {
	return d.options.AsShown(string(d.text[max(0, at-secretContext):at]), string(d.text[at:max(at, end)]))
}

// lastWords returns a place between two offsets inside of a string from which the text up to end occurs once; −1 if
// there is none. That text has tailMax bytes, or more, up to most.
func (d *Document) lastWords(from, to, end, most int64) int64 {
	for size := int64(tailMax); size <= most; size *= 2 {
		at := d.wordStart(max(from, end-size), min(to, end-tailMin))
		if at >= 0 && d.restartable(at, end, true) && d.shown(at, end) {
			return at
		}
	}
	to = min(to, end-restartMin) // fewer words, behind a secret
	for at := d.wordStart(max(from, end-tailMin), to); at >= 0; at = d.wordStart(at+1, to) {
		if d.restartable(at, end, true) && d.shown(at, end) {
			return at
		}
	}
	return -1
}

// restartable reports whether the text from an offset on is long enough and occurs once. inside says that the offset is
// inside of a string.
func (d *Document) restartable(at, end int64, inside bool) bool {
	t := d.text[at:max(at, end)]
	if nonBlank(t) < restartMin {
		return false
	}
	us, _ := units(t, inside)
	for _, n := range []int{min(len(us), maxCounted), len(us)} {
		switch {
		case n >= d.once:
			return true
		case n <= d.again:
			continue
		case d.occursOnce(us[len(us)-n:]):
			d.once = n
			return true
		}
		d.again = n
	}
	return false
}

// maxCounted is the number of units at the end of a text that are counted first: longer ends mostly differ there.
const maxCounted = 4096

// occursOnce reports whether the text has some units in one place, as the join compares; places may overlap.
func (d *joined) occursOnce(us []rune) bool {
	n, c := 0, cursor{text: d.text}
	for m := newMatcher(us); n < 2; {
		u, ok := c.next()
		if !ok {
			break
		}
		if m.next(u) {
			n++
		}
	}
	return n == 1
}

// wordStart returns the first place in [from, to) of the inside of a string where a word begins; −1 if there is none.
// Text without blanks has words of one character.
func (d *joined) wordStart(from, to int64) int64 {
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
func (d *joined) outsideEscape(i int64) bool {
	return bytes.IndexByte(d.text[max(0, i-12):i+1], '\\') < 0
}

// elementAnchor returns where an element begins whose text up to the end is long enough and occurs once: the cut-off
// element or one before it. If these are too long, an element further inside is taken, or the last words of a string.
func (d *Document) elementAnchor(a anchor) (at int64, inside bool) {
	p := d.parser
	depths := []int{a.depth}
	for depth := len(p.containers) - 1; depth > max(a.depth, len(p.containers)-1-triedLevels); depth-- {
		depths = append(depths, depth)
	}
	for depth := a.depth - 1; depth >= max(0, a.depth-triedLevels); depth-- {
		depths = append(depths, depth)
	}
	fallback := int64(0)
	try := func(starts []int64) bool {
		var good bool
		if at, good = d.lastUnique(starts, a.end); at > fallback {
			fallback = at
		}
		return good
	}
	for _, depth := range depths {
		f := &p.containers[depth]
		starts := f.Last
		if f.Open >= 0 {
			starts = append(starts[:len(starts):len(starts)], f.Open)
		}
		if try(starts) {
			return at, false
		}
	}
	members := make([]int64, len(p.recent))
	for i, at := range p.recent {
		members[i] = d.memberStart(at)
	}
	if try(members) {
		return at, false
	}
	for i := len(p.recent) - 1; i >= 0; i-- {
		from, to := d.stringAt(p.recent[i], a.end)
		if at = d.lastWords(from, to, a.end, 2*tailMax); at >= 0 {
			return at, true
		}
	}
	return fallback, false
}

// lastUnique returns the last of some offsets from which the text up to the end is long enough and occurs once. good
// says that it is not too long and is shown as it is, which is preferred; at is −1 if there is none.
func (d *Document) lastUnique(starts []int64, end int64) (at int64, good bool) {
	at = -1
	for i := len(starts) - 1; i >= 0 && i >= len(starts)-lastStarts; i-- {
		if !d.restartable(starts[i], end, false) {
			continue
		}
		if end-starts[i] <= restartMax && d.shown(starts[i], end) {
			return starts[i], true
		}
		if at < 0 {
			at = starts[i]
		}
		if end-starts[i] > restartMax { // and those before it
			break
		}
	}
	return at, false
}

// memberStart returns where the name of the value at an offset begins; the offset if it has none.
func (d *joined) memberStart(at int64) int64 {
	before := bytes.TrimRight(d.text[:at], " \t\r\n")
	name, ok := bytes.CutSuffix(before, []byte{':'})
	if name = bytes.TrimRight(name, " \t\r\n"); !ok || len(name) == 0 {
		return at
	}
	for name = name[:len(name)-1]; ; {
		i := bytes.LastIndexByte(name, '"')
		if i < 0 {
			return at
		}
		if name = name[:i]; backslashes(name)%2 == 0 {
			return int64(i)
		}
	}
}

// stringAt returns where the inside of the string at an offset begins and ends; an empty range if there is none.
func (d *joined) stringAt(at, end int64) (from, to int64) {
	if at >= end || d.text[at] != '"' {
		return at, at
	}
	for i := at + 1; i < end; i++ {
		switch d.text[i] {
		case '\\':
			i++
		case '"':
			return at + 1, i
		}
	}
	return at + 1, end
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
