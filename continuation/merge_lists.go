package continuation

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// cutPlace is where a document with sections is cut off: the container that is closed to merge others into it, and
// what is left out by that.
type cutPlace struct {
	depth int    // of the container that is closed
	of    role   // of the container of the piece
	piece []byte // the cut-off child of the container; empty: nothing is left out
	due   bool   // the text ends after a comma or colon: something must follow
}

// cutPlace returns the innermost container that can be closed so that no part of an element is taken for an element.
func (d *joined) cutPlace() cutPlace {
	p := d.parser
	text := bytes.TrimRight(d.text[:complete(d.text, p.scan.Inside() == "string")], " \t\r\n")
	last := text[len(text)-1]
	c := cutPlace{depth: 1, of: document, due: last == ',' || last == ':'}
	from := int64(-1)
	for depth := len(p.containers) - 1; depth > 0; depth-- {
		f := &p.containers[depth]
		c.depth, c.of, from = depth, f.Role, f.Open
		switch {
		case f.Role == noRole || f.Role == row || f.Role == headers:
			continue
		case f.Role == element && (f.Open >= 0 || c.due || f.Count == 0):
			c.depth, c.of, from = depth-1, elements, f.Start
		}
		break
	}
	// A section whose id has not arrived cannot be found again: all of it must be.
	if at := slices.IndexFunc(p.containers, func(f container) bool { return f.Role == section }); at >= 0 &&
		d.openID(at) == "" {
		c.depth, c.of, from = at-1, sections, p.containers[at].Start
	}
	if from >= 0 && from < int64(len(text)) {
		c.piece = text[from:]
	}
	return c
}

// openID returns the id of the section that is open at a depth; "" if it has not arrived.
func (d *joined) openID(depth int) string {
	all, _ := members(d.closedAt(depth))
	list, _ := elementsOf(rawMember(all, "sections"))
	if len(list) == 0 {
		return ""
	}
	return sectionID(list[len(list)-1])
}

// closedAt returns the text up to the last complete child of the container at a depth, with its containers closed.
func (d *joined) closedAt(depth int) []byte {
	p := d.parser
	if len(p.containers) == 1 {
		return d.text
	}
	depth = min(depth, len(p.containers)-1)
	f := &p.containers[depth]
	end := f.Start + 1
	if f.Count > 0 {
		end = f.End
	}
	out := slices.Clone(d.text[:end])
	for ; depth > 0; depth-- {
		if p.containers[depth].Object {
			out = append(out, '}')
		} else {
			out = append(out, ']')
		}
	}
	return out
}

// elements joins the elements of two sections with the same id. open says that the text is cut off in the first.
func (m *merger) elements(x, y []json.RawMessage, open bool) ([]json.RawMessage, string) {
	if open && m.cut.of == elements && len(m.units) > 0 {
		return m.cutElement(x, y)
	}
	inside := open && (m.cut.of == items || m.cut.of == rows)
	if len(x) == 0 || len(y) == 0 {
		return append(x, y...), ""
	}
	closed := x
	if inside {
		closed = x[:len(x)-1]
	}
	for _, n := range overlapping(closed, y) { // then the elements at the seam may be one
		if n == len(y) || !inside && n > 0 {
			continue
		}
		both, reason := m.pair(x[len(x)-1], y[n], inside)
		if reason != "" {
			return nil, reason
		}
		if both != nil {
			m.used = m.used || inside
			return append(append(x[:len(x)-1:len(x)-1], both), y[n+1:]...), ""
		}
	}
	return m.lists(x, y, false, whole)
}

// cutElement joins the elements of a section of which the last one was cut off.
func (m *merger) cutElement(x, y []json.RawMessage) ([]json.RawMessage, string) {
	for _, n := range overlapping(x, y) {
		if n == len(y) {
			continue
		}
		element := y[n]
		if !m.completes(element) {
			if element = m.cutCode(element); element == nil {
				continue
			}
		}
		if len(x) > 0 && n == 0 && again(x, y, whole) >= 0 {
			continue
		}
		if reason := m.alike(x, y[n:]); reason != "" {
			return nil, reason
		}
		m.used = true
		return append(append(x, element), y[n+1:]...), ""
	}
	return nil, fmt.Sprintf("it neither repeats nor completes the cut-off element %s", clip(string(m.cut.piece), maxWord))
}

// cutCode joins code to the cut-off element, if both are blocks of code and the new one repeats the last whole lines of
// the old one; nil if not.
func (m *merger) cutCode(raw json.RawMessage) json.RawMessage {
	old, _ := members(append(slices.Clone(m.cut.piece), `"}`...))
	more, _ := members(raw)
	if len(old) == 0 || old[len(old)-1].Key != "code" {
		return nil
	}
	begun := strings.Split(stringOf(rawMember(old, "code")), "\n")
	return m.code(old, more, begun[:len(begun)-1], begun[len(begun)-1])
}

// code joins two blocks of code, of which the first has some lines, and open after them. It returns nil unless the
// second repeats the last of these lines.
func (m *merger) code(old, more []member, lines []string, open string) json.RawMessage {
	code, n, ok := joinLines(lines, open, stringOf(rawMember(more, "code")))
	if !ok || m.scalars(&old, more, "code", false) != "" {
		return nil
	}
	setMember(&old, "code", quote(code))
	m.notes = append(m.notes, plural(int64(n), "line")+" of code that were there already")
	return joinObject(old)
}

// pair joins two elements that continue each other: lists, tables with the same headers, and code with the same lines
// at the seam. It returns nil if they are two elements. open says that the text is cut off in the list of the first.
func (m *merger) pair(a, b json.RawMessage, open bool) (both json.RawMessage, reason string) {
	first, _ := members(a)
	second, _ := members(b)
	if x, y := rawMember(first, "code"), rawMember(second, "code"); x != nil && y != nil {
		return m.code(first, second, strings.Split(strings.TrimSuffix(stringOf(x), "\n"), "\n"), ""), ""
	}
	for _, key := range []string{"items", "rows"} {
		x, isList := elementsOf(rawMember(first, key))
		y, isList2 := elementsOf(rawMember(second, key))
		if !isList || !isList2 {
			continue
		}
		if key == "rows" && !equal(rawMember(first, "headers"), rawMember(second, "headers")) ||
			m.scalars(&first, second, key, false) != "" {
			return nil, ""
		}
		keyOf := whole
		if key == "rows" {
			keyOf = firstCell
		}
		list, reason := m.lists(x, y, open, keyOf)
		if reason != "" {
			return nil, reason
		}
		setMember(&first, key, joinArray(list))
		return joinObject(first), ""
	}
	return nil, ""
}

// lists appends the elements of y to those of x, without those at the seam that are the same. A value of y whose key is
// one of x is refused, unless keys of x occur twice themselves.
func (m *merger) lists(
	x, y []json.RawMessage, open bool, keyOf func(json.RawMessage) string,
) ([]json.RawMessage, string) {
	fits := func(n int) bool {
		return !open || len(m.units) == 0 || n < len(y) && m.completes(y[n])
	}
	seams := slices.DeleteFunc(overlapping(x, y), func(n int) bool { return !fits(n) })
	switch {
	case len(seams) == 0:
		return nil, fmt.Sprintf("it neither repeats nor completes what is cut off: %s", clip(string(m.cut.piece), maxWord))
	case len(seams) > 2 || len(seams) == 2 && seams[1] > 0:
		return nil, fmt.Sprintf("it may repeat %d or %d of the last elements", seams[0], seams[1])
	}
	n := seams[0] // the last one is 0 if it fits
	if i := again(x, y[n:], keyOf); i >= 0 {
		return nil, fmt.Sprintf("it has %s, which is there already or contradicts what is", clip(string(y[n+i]), maxWord))
	}
	if reason := m.alike(x, y[n:]); reason != "" {
		return nil, reason
	}
	if n > 0 {
		m.notes = append(m.notes, plural(int64(n), "element")+" that was there already: "+clip(string(y[n-1]), maxWord))
	}
	return append(x, y[n:]...), ""
}

// alike returns why values may be some of those before them, changed; "" if nothing speaks for that.
func (m *merger) alike(x, y []json.RawMessage) string {
	var begun []byte
	if m.cut.of == elements || m.cut.of == items || m.cut.of == rows {
		begun = m.cut.piece
	}
	before := rawBytes(x[max(0, len(x)-lastStarts):])
	return alike(before, bytes.Join(rawBytes(y[:min(len(y), maxNext)]), []byte{','}), begun)
}

// overlapping returns the numbers of values at the end of x that y begins with, most first; 0 is one of them.
func overlapping(x, y []json.RawMessage) []int {
	a, b := wholes(x[max(0, len(x)-len(y)):]), wholes(y)
	var list []int
	for n := len(a); n >= 0; n-- {
		if slices.Equal(a[len(a)-n:], b[:n]) {
			list = append(list, n)
		}
	}
	return list
}

// again returns the index in y of the first value with a key of x; −1 if there is none, or x has a key twice.
func again(x, y []json.RawMessage, keyOf func(json.RawMessage) string) int {
	have := map[string]bool{}
	for _, raw := range x {
		have[keyOf(raw)] = true
	}
	if len(have) < len(x) {
		return -1
	}
	return slices.IndexFunc(y, func(raw json.RawMessage) bool { return have[keyOf(raw)] })
}

// whole returns a value without what does not matter to JSON.
func whole(raw json.RawMessage) string {
	us, _ := units(raw, false)
	b := make([]byte, 0, 4*len(us))
	for _, u := range us {
		b = binary.LittleEndian.AppendUint32(b, uint32(u))
	}
	return string(b)
}

func wholes(list []json.RawMessage) []string {
	out := make([]string, len(list))
	for i, raw := range list {
		out[i] = whole(raw)
	}
	return out
}

// firstCell returns the first cell of a row of several cells, else the whole value: it names the row.
func firstCell(raw json.RawMessage) string {
	if cells, ok := elementsOf(raw); ok && len(cells) > 1 {
		return whole(cells[0])
	}
	return whole(raw)
}

// joinLines joins code to lines, of which the last n are repeated at its beginning. open is the beginning of the line
// after them, if they are cut off there. ok is false if no number of lines fits, or several do.
func joinLines(lines []string, open, code string) (joined string, n int, ok bool) {
	y := strings.Split(code, "\n")
	found := 0
	for k := min(len(lines), len(y)); k > 0; k-- {
		if slices.Equal(lines[len(lines)-k:], y[:k]) && strings.TrimSpace(strings.Join(y[:k], "")) != "" &&
			(open == "" || k < len(y) && strings.HasPrefix(y[k], open)) {
			joined, n = strings.Join(append(lines[:len(lines):len(lines)], y[k:]...), "\n"), k
			found++
		}
	}
	return joined, n, found == 1
}
