package continuation

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// member is a member of an object as it is written.
type member struct {
	Key string
	Raw json.RawMessage
}

// members returns the members of an object in their order; not ok if it is none.
func members(raw []byte) (list []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		key, isKey := t.(string)
		var m member
		if err != nil || !isKey || d.Decode(&m.Raw) != nil {
			return nil, false
		}
		m.Key = key
		list = append(list, m)
	}
	return list, true
}

// rawMember returns the value of a member of an object; nil if there is none.
func rawMember(list []member, key string) json.RawMessage {
	for _, m := range list {
		if m.Key == key {
			return m.Raw
		}
	}
	return nil
}

// elementsOf returns the elements of an array; not ok if it is none.
func elementsOf(raw []byte) (list []json.RawMessage, ok bool) {
	if firstByte(raw) != '[' || json.Unmarshal(raw, &list) != nil {
		return nil, false
	}
	return list, true
}

// stringOf returns the value of a string; "" for another value.
func stringOf(raw []byte) string {
	var s string
	_ = json.Unmarshal(raw, &s) // fails for another value
	return s
}

// joinFresh joins a part to a document that has no section yet: the part takes its place.
func (d *Document) joinFresh(part []byte) Result {
	p := newParser()
	p.readAll(part)
	if s := p.state(); s == Broken || s == Trailing || s == TooDeep || firstByte(part) != '{' {
		return d.refuse("there is no section yet, and the part is no document: " + clip(string(part), 60))
	}
	return d.replaceText(part, "restart of the document")
}

// merge joins a whole document with further sections to this one, by the ids of sections. The cut-off element is
// dropped. dropped says what was left out.
func (d *Document) merge(part []byte) (joined []byte, dropped string, ok bool) {
	if !d.parser.outline.Found || firstByte(part) != '{' {
		return nil, "", false
	}
	fresh, ok := members(part)
	more, isList := elementsOf(rawMember(fresh, "sections"))
	if !ok || !isList || len(more) == 0 || !json.Valid(part) {
		return nil, "", false
	}
	old, ok := members(d.closed())
	list, isList := elementsOf(rawMember(old, "sections"))
	if !ok || !isList {
		return nil, "", false
	}
	if first := sectionID(more[0]); len(list) > 1 && first != "" && first == sectionID(list[0]) {
		return nil, "", false // it begins like the document itself, but not word for word
	}
	var notes []string
	if d.anchor.piece < int64(len(d.text)) {
		notes = append(notes, "the cut-off element "+clip(string(d.text[d.anchor.piece:]), maxWord))
	}
	for _, raw := range more {
		s, isObject := members(raw)
		if !isObject {
			return nil, "", false
		}
		id := stringOf(rawMember(s, "id"))
		at := slices.IndexFunc(list, func(o json.RawMessage) bool {
			return id != "" && sectionID(o) == id
		})
		if at < 0 {
			list = append(list, raw)
			continue
		}
		both, note, can := mergeSection(list[at], s)
		if !can {
			return nil, "", false
		}
		if note != "" {
			notes = append(notes, note)
		}
		list[at] = both
	}
	setMember(&old, "sections", joinArray(list))
	for _, m := range fresh {
		if rawMember(old, m.Key) == nil {
			old = append(old, m)
		}
	}
	return joinObject(old), strings.Join(notes, "; "), true
}

// sectionID returns the id of a section; "" if it has none.
func sectionID(raw json.RawMessage) string {
	m, _ := members(raw)
	return stringOf(rawMember(m, "id"))
}

// closed returns the text without the cut-off element, and with its containers closed.
func (d *Document) closed() []byte {
	p, a := d.parser, d.anchor
	if len(p.frames) == 1 {
		return d.text
	}
	depth := max(a.depth, 1)
	f := &p.frames[depth]
	end := f.Start + 1
	if f.Count > 0 {
		end = f.End
	}
	out := slices.Clone(d.text[:end])
	for ; depth > 0; depth-- {
		if p.frames[depth].Object {
			out = append(out, '}')
		} else {
			out = append(out, ']')
		}
	}
	return out
}

// mergeSection appends the elements of a section to those of the one with the same id.
func mergeSection(raw json.RawMessage, more []member) (json.RawMessage, string, bool) {
	old, _ := members(raw)
	if a, b := rawMember(old, "content_type"), rawMember(more, "content_type"); a != nil && b != nil &&
		stringOf(a) != stringOf(b) {
		return nil, "", false
	}
	a, b := rawMember(old, "elements"), rawMember(more, "elements")
	if firstByte(a) == '{' && firstByte(b) == '{' {
		both, note, ok := mergeElement(a, b)
		if !ok {
			return nil, "", false
		}
		setMember(&old, "elements", both)
		return joinObject(old), note, true
	}
	first, second := elementList(a), elementList(b)
	note := ""
	if len(first) > 0 && len(second) > 0 {
		last := first[len(first)-1]
		if equal(last, second[0]) {
			second = second[1:]
			note = "an element that was there already: " + clip(string(last), maxWord)
		} else if both, n, ok := mergeElement(last, second[0]); ok {
			first[len(first)-1], second, note = both, second[1:], n
		}
	}
	setMember(&old, "elements", joinArray(append(first, second...)))
	return joinObject(old), note, true
}

func elementList(raw json.RawMessage) []json.RawMessage {
	if list, ok := elementsOf(raw); ok {
		return list
	}
	if len(raw) > 0 {
		return []json.RawMessage{raw}
	}
	return nil
}

// mergeElement joins two elements of one section that continue each other: lists, tables with the same headers, and
// code with the same lines at the seam.
func mergeElement(a, b json.RawMessage) (json.RawMessage, string, bool) {
	first, ok := members(a)
	second, ok2 := members(b)
	if !ok || !ok2 {
		return nil, "", false
	}
	if x, y := rawMember(first, "code"), rawMember(second, "code"); x != nil && y != nil {
		code, n, ok := joinLines(stringOf(x), stringOf(y))
		if !ok || stringOf(rawMember(first, "language")) != stringOf(rawMember(second, "language")) {
			return nil, "", false
		}
		setMember(&first, "code", quote(code))
		return joinObject(first), plural(int64(n), "line") + " of code that were there already", true
	}
	for _, key := range []string{"items", "rows"} {
		x, isList := elementsOf(rawMember(first, key))
		y, isList2 := elementsOf(rawMember(second, key))
		if !isList || !isList2 ||
			key == "rows" && !equal(rawMember(first, "headers"), rawMember(second, "headers")) {
			continue
		}
		note := ""
		if len(x) > 0 && len(y) > 0 && equal(x[len(x)-1], y[0]) {
			y, note = y[1:], "an element that was there already: "+clip(string(x[len(x)-1]), maxWord)
		}
		setMember(&first, key, joinArray(append(x, y...)))
		return joinObject(first), note, true
	}
	return nil, "", false
}

// quote returns a text as a JSON string, without escaping HTML.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string: cannot fail
	return bytes.TrimSpace(b.Bytes())
}

// joinLines joins two blocks of code of which the second begins with the last whole lines of the first.
func joinLines(a, b string) (string, int, bool) {
	x, y := strings.Split(strings.TrimSuffix(a, "\n"), "\n"), strings.Split(b, "\n")
	for n := min(len(x), len(y)); n > 0; n-- {
		if slices.Equal(x[len(x)-n:], y[:n]) && strings.TrimSpace(strings.Join(y[:n], "")) != "" {
			return strings.Join(append(x, y[n:]...), "\n"), n, true
		}
	}
	return "", 0, false
}

// equal reports whether two values are the same but for white space and escapes.
func equal(a, b json.RawMessage) bool {
	x, _ := units(a, false)
	y, _ := units(b, false)
	return slices.Equal(x, y)
}

// setMember replaces a member of an object, or appends it.
func setMember(list *[]member, key string, raw json.RawMessage) {
	for i := range *list {
		if (*list)[i].Key == key {
			(*list)[i].Raw = raw
			return
		}
	}
	*list = append(*list, member{key, raw})
}

func joinObject(list []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.Key))
		b.WriteByte(':')
		b.Write(m.Raw)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func joinArray(list []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']')
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
