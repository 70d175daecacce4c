package continuation

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

const (
	// surely is the number of characters from which on a match is sure, even if it occurs in the text several times.
	surely = 16
	// repeatedWithin is the number of characters after the beginning of a part in which the end of the text is looked for.
	repeatedWithin = 512
	// maxLeaves and maxElement bound what of an element is compared with others.
	maxLeaves, maxElement = 128, 16 << 10
	// maxBefore is how many of the last elements are compared with each other, to learn how similar elements usually are.
	maxBefore = 8
	// maxNext is the number of elements of a part that are compared with those before them.
	maxNext = 8
	// skeletonSize is the number of brackets, names and values by which beginnings are compared.
	skeletonSize = 5
)

// doubts finds reasons why a part may not belong where it would be joined.
type doubts struct{ *joined }

func (d *joined) doubts() doubts { return doubts{d} }

// doubt returns why a reading of a part that repeats some of the text may be wrong; "" if there is no reason to think
// so.
func (d doubts) doubt(r *reading) string {
	text, rest := d.text[:d.anchor.end], r.after()
	if r.matched == 0 {
		text = d.text
	}
	for depth := range d.parser.containers {
		f := &d.parser.containers[depth]
		if f.Object || f.Open < 0 && depth < len(d.parser.containers)-1 || len(f.Last) == 0 {
			continue
		}
		piece, next := text[len(text):], bytes.TrimLeft(rest, " \t\r\n,")
		if f.Open >= 0 {
			piece = text[f.Open:]
			next = slices.Concat(piece, rest[:min(len(rest), maxElement)])
		}
		if reason := alike(d.children(f), next, piece); reason != "" {
			return reason
		}
	}
	if r.matched < surely && d.nestsDocument(r.part, r.at) {
		return "it begins like the document itself or an element of it, but not word for word"
	}
	if r.weak && (d.headAgain(r.part, r.inside, 2*headMin) || !d.fitsList(r)) {
		return "what it repeats occurs in other places too, and is too short to tell them apart"
	}
	if d.repeatsEnd(r) {
		return "it repeats the end of the text, but not word for word"
	}
	return ""
}

// fitsList reports whether the element that a part completes has the shape of one before it in its list, or need not.
func (d doubts) fitsList(r *reading) bool {
	for depth := len(d.parser.containers) - 1; depth >= 0; depth-- {
		f := &d.parser.containers[depth]
		if f.Object || f.Open < 0 || len(f.Last) == 0 {
			continue
		}
		x := shapeOf(slices.Concat(d.text[f.Open:d.anchor.end], r.after()))
		var all []shaped
		for _, raw := range d.children(f) {
			e := shapeOf(raw)
			if x.shape == e.shape || !(x.whole && e.whole) && strings.HasPrefix(e.shape, x.shape) {
				return true
			}
			all = append(all, e)
		}
		if sameShapes(all) {
			return false
		}
	}
	return !d.beginsLike(r.part, r.at)
}

// headMin is the least number of characters of a beginning that is looked for in the text.
const headMin = 12

// headAgain reports whether a part begins with characters of the last kilobytes of the text, and continues nearly as
// the text does from there to its end. Of several such places the last one is compared; in a list with equal elements,
// several places are enough. least is the number of characters that are looked for first.
func (d doubts) headAgain(part []byte, inside bool, least int) bool {
	const most = 4 * headMin
	got, _ := units(part[:min(len(part), 8<<10)], inside)
	kept := d.lastUnits()
	n, from := 2, 0
	for size := least; size <= min(most, len(got)) && n > 1; size += 6 {
		m, places := newMatcher(got[:size]), 0
		for i, u := range kept {
			if m.next(u) {
				places, from = places+1, i+1-size
			}
		}
		if places == 0 {
			break
		}
		n = places
	}
	if len(got) < least || kept == nil || !hasPrefix(kept[from:], got[:least]) {
		return false
	}
	return n > 1 && d.spansEqual(d.anchor.end) || goesOnAs(got, kept[from:], n == 1)
}

// goesOnAs reports whether got continues as kept does to its end, but for one word. If it is not known that got begins
// where kept does, that word must be the last one and no number, because numbers count records.
func goesOnAs(got, kept []rune, known bool) bool {
	const near, last = 12, 4
	same := 0
	for same < min(len(kept), len(got)) && kept[same] == got[same] {
		same++
	}
	if same >= len(kept)-near {
		return known || same == min(len(kept), len(got)) || !isDigit(kept[same]) && !isDigit(got[same])
	}
	from := max(0, len(kept)-last-near)
	return known && from < len(got) && contains(got[from:min(len(kept)+near, len(got))], kept[len(kept)-last:])
}

func isDigit(r rune) bool { return unicode.IsDigit(r &^ inString) }

// contains reports whether units have others in a row.
func contains(us, others []rune) bool {
	m := newMatcher(others)
	return slices.ContainsFunc(us, m.next)
}

// beginsLike reports whether a part begins like the document, or like an element that is open and begins before an
// offset.
func (d doubts) beginsLike(part []byte, before int64) bool {
	got, _ := units(part[:min(len(part), 12*headMin)], false)
	for depth := range d.parser.containers {
		f := &d.parser.containers[depth]
		if f.Open < 0 || f.Open >= before || depth == 0 && d.lines() {
			continue
		}
		begun, _ := units(d.text[f.Open:min(f.Open+12*headMin, d.anchor.end)], false)
		if len(begun) >= headMin && hasPrefix(got, begun[:headMin]) {
			return true
		}
	}
	return false
}

// nestsDocument reports whether a part begins with a name that the text does not have, but otherwise like the document
// or an element of a list that is open and begins before an offset: it begins again there, with another word.
func (d doubts) nestsDocument(part []byte, before int64) bool {
	got := shapeOf(part)
	within := shapeOf(slices.Concat([]byte{'{'}, part[:min(len(part), maxElement)])) // it may begin at a name
	for depth := range d.parser.containers {
		f := &d.parser.containers[depth]
		if f.Object || f.Open < 0 || f.Open >= before || depth == 0 && d.lines() {
			continue
		}
		begun := shapeOf(d.text[f.Open:d.anchor.end]).skeleton
		if len(begun) < 4 || depth > 0 && len(begun) < skeletonSize {
			continue
		}
		if strings.HasPrefix(got.skeleton, begun) && !bytes.Contains(d.text, got.name) ||
			depth == 0 && strings.HasPrefix(within.skeleton, begun) && !bytes.Contains(d.text, within.name) {
			return true
		}
	}
	return false
}

// wordChanged reports whether a part begins with the last words of the text, of which one differs and is no number,
// because numbers count records. In a string it takes three words. Between members it takes two, if the text does not
// have the first name.
func (d doubts) wordChanged(part []byte) bool {
	const most, window = 16, 600
	least := 3
	if !d.insideString() {
		name := shapeOf(slices.Concat([]byte{'{'}, part[:min(len(part), window)])).name
		if least = 2; !d.parser.top().Object || name == nil || bytes.Contains(d.text, name) {
			return false
		}
	}
	words := func(b []byte) []string {
		return strings.FieldsFunc(string(b), func(r rune) bool { return !isWordRune(r) })
	}
	kept, got := words(d.text[max(0, len(d.text)-window):]), words(part[:min(len(part), window)])
	last, _ := utf8.DecodeLastRune(d.text)
	for n := least; n <= min(most, len(kept)-1, len(got)); n++ {
		differ, number := 0, false
		for i, w := range kept[len(kept)-n:] {
			if w == got[i] || i == n-1 && isWordRune(last) && strings.HasPrefix(got[i], w) {
				continue
			}
			differ++
			number = isDigit(rune(w[0])) && isDigit(rune(got[i][0]))
		}
		if differ == 0 || differ == 1 && !number {
			return true
		}
	}
	return false
}

// children returns the last complete children of a container.
func (d *joined) children(f *container) [][]byte {
	list := make([][]byte, 0, len(f.Last))
	for i, at := range f.Last {
		end := f.End
		if i+1 < len(f.Last) {
			end = f.Last[i+1]
		}
		list = append(list, d.text[at:end])
	}
	return list
}

// repeatsEnd reports whether a part has the last words of the text again, behind what it repeats word for word. It
// looks for the shortest end of the text that occurs in it once.
func (d doubts) repeatsEnd(r *reading) bool {
	end, _ := units(d.text[d.anchor.at:d.anchor.end], d.anchor.inside)
	for k := surely + surely/2; k < len(end); k *= 2 {
		if d.occursOnce(end[len(end)-k:]) {
			end = end[len(end)-k:]
		}
	}
	match, c := newMatcher(end), cursor{text: r.part, within: r.inside}
	for n := 1; n <= r.matched+repeatedWithin; n++ {
		u, ok := c.next()
		if !ok {
			break
		}
		if match.next(u) && n > r.matched {
			return true
		}
	}
	return false
}

// leaf is a string, number or literal of an element: its words.
type leaf struct {
	words []string
	size  int
	open  bool // it is cut off
}

// shaped is an element as it is compared with others.
type shaped struct {
	text   []byte // of all that was read
	leaves []leaf
	shape  string // the brackets, names and values, as far as the element goes
	whole  bool

	skeleton string // its first brackets, names (k) and values (.), also those that are cut off
	name     []byte // the first name in it, in quotes
}

// shapeOf reads the first element of a text.
func shapeOf(text []byte) shaped {
	var s content.Scanner
	var e shaped
	var shape strings.Builder
	begin := func(symbol byte) {
		if len(e.skeleton) < skeletonSize {
			e.skeleton += string(symbol)
		}
	}
	from := 0
	text = text[:min(len(text), maxElement)]
	for at := 0; at < len(text) && s.Err() == nil && len(e.leaves) < maxLeaves; {
		n, event := s.Scan(text[at:])
		at += n
		switch event {
		case content.KeyStart:
			from = at - 1
			begin('k')
		case content.StringStart, content.NumberStart, content.LiteralStart:
			from = at - 1
			begin('.')
		case content.KeyEnd:
			if shape.Write(text[from:at]); e.name == nil && len(e.skeleton) < skeletonSize {
				e.name = text[from:at]
			}
		case content.StringEnd, content.NumberEnd, content.LiteralEnd:
			e.leaves = append(e.leaves, leafOf(text[from:at], false))
			shape.WriteByte('.')
		case content.ObjectStart, content.ArrayStart, content.ObjectEnd, content.ArrayEnd:
			shape.WriteByte(text[at-1])
			begin(text[at-1])
		}
		if e.whole = s.Depth() == 0 && event.Ends(); e.whole {
			break
		}
	}
	e.text = text[:s.Offset()]
	if s.Err() == nil && s.Inside() == "string" && !e.whole {
		e.leaves = append(e.leaves, leafOf(text[from:], true))
	}
	e.shape = shape.String()
	return e
}

func leafOf(raw []byte, open bool) leaf {
	words := strings.Fields(unquote(inQuotes(raw)))
	if open && len(words) > 0 {
		words = words[:len(words)-1] // it may be cut off
	}
	return leaf{words, utf8.RuneCount(raw), open}
}

// similarity returns how much of a leaf is in another one at its beginning and its end, from 0 to 1.
func (l leaf) similarity(other leaf) float64 {
	a, b := l.words, other.words
	if l.open {
		b = b[:min(len(a), len(b))]
	}
	if slices.Equal(a, b) {
		return 1
	}
	same, least := 0, min(len(a), len(b))
	for same < least && a[same] == b[same] {
		same++
	}
	for end := 1; same < least && a[len(a)-end] == b[len(b)-end]; end++ {
		same++
	}
	return float64(same) / float64(max(len(a), len(b)))
}

// alike returns why the next elements may repeat earlier ones, word for word or changed; "" if there is no reason to
// think so. piece is the beginning of the first of them, which the text has already: that one is compared only with
// earlier elements that begin so.
func alike(before [][]byte, next, piece []byte) string {
	all := make([]shaped, len(before))
	for i, raw := range before {
		all[i] = shapeOf(raw)
	}
	usual := usualSimilarity(all[max(0, len(all)-maxBefore):])
	begun, _ := units(piece, false)
	similar := 0.66 // of three words two
	if len(all) > 2 {
		similar = 0.5
	}
	for n := range maxNext {
		x := shapeOf(next)
		for _, e := range all {
			us, _ := units(e.text, false)
			if hasPrefix(us, begun) && x.changed(e, usual, similar) {
				return "it has what is nearly an element that is there already: " + clip(string(e.text), maxWord)
			}
		}
		if n == 0 && len(all) > 1 && x.whole && x.shape != all[0].shape && sameShapes(all) {
			return "with it the cut-off element is of another shape than those before it"
		}
		if !x.whole {
			break
		}
		similar = 0.75
		all, begun, next = append(all, x), nil, bytes.TrimLeft(next[len(x.text):], " \t\r\n,")
	}
	return ""
}

// usualSimilarity returns the 90th percentile of the similarity of two elements, for each leaf.
func usualSimilarity(all []shaped) []float64 {
	pairs := make([][]float64, maxLeaves)
	for i, e := range all {
		for _, other := range all[:i] {
			for j := range min(len(e.leaves), len(other.leaves), maxLeaves) {
				pairs[j] = append(pairs[j], e.leaves[j].similarity(other.leaves[j]))
			}
		}
	}
	usual := make([]float64, maxLeaves+1) // one more for a leaf that is cut off
	for i, list := range pairs {
		if slices.Sort(list); len(list) > 0 {
			usual[i] = list[len(list)*9/10]
		}
	}
	return usual
}

// sameShapes reports whether elements differ in their values only.
func sameShapes(all []shaped) bool {
	return !slices.ContainsFunc(all, func(e shaped) bool { return !e.whole || e.shape != all[0].shape })
}

// changed reports whether x is e, or e with a leaf in eight changed, and more similar to it than elements usually are.
// Leaves with less than this similarity are different ones.
func (x shaped) changed(e shaped, usual []float64, similar float64) bool {
	if x.shape == "." && x.leaves[0].size < surely/2 { // a cell
		return false
	}
	same, other, differ := 0, 0, 0
	for i := range min(len(x.leaves), len(e.leaves)) {
		switch s := x.leaves[i].similarity(e.leaves[i]); {
		case len(x.leaves[i].words) == 0:
			continue
		case s >= similar && s > usual[i]:
			same += x.leaves[i].size
		case s < similar:
			other += x.leaves[i].size
		}
		if x.leaves[i].similarity(e.leaves[i]) < 1 {
			differ++
		}
	}
	return same > 0 && same >= other && differ <= max(1, len(x.leaves)/8)
}
