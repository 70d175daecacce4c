package continuation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
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

// joinFresh joins a part to a document that has no section yet: the part takes its place, if it has all members again.
func (d *Document) joinFresh(part []byte) Result {
	fresh := &joined{parser: newParser()}
	fresh.parser.read(part, int64(len(part)))
	fresh.text = part
	if s := fresh.parser.state(); s.faulty() || firstByte(part) != '{' {
		return d.refuse("there is no section yet, and the part is no document: " + clip(string(part), 60))
	}
	old, _ := members(d.text)
	again, _ := members(fresh.closedAt(1))
	for _, m := range old {
		if m.Key != "sections" && !equal(m.Raw, rawMember(again, m.Key)) {
			return d.refuse(fmt.Sprintf("the part takes the place of the document, and has no equal %q", clip(m.Key, maxWord)))
		}
	}
	return d.replaceText(part, "restart of the document")
}

// merger joins a whole document with further sections to one that is cut off, by the ids of sections. It only adds: it
// fails where anything that has arrived would be lost or contradicted.
type merger struct {
	cut   cutPlace
	units []rune   // of the cut-off piece
	used  bool     // the part goes on from the cut-off place
	notes []string // what was left out because it was there already
}

// isFresh reports whether the document has a list of sections, and a part is a whole document with one.
func (d *joined) isFresh(part []byte) bool {
	if !d.parser.outline.Found || firstByte(part) != '{' || !json.Valid(part) {
		return false
	}
	list, _ := members(part)
	more, isList := elementsOf(rawMember(list, "sections"))
	return isList && len(more) > 0
}

// merge joins a whole document with further sections to this one. ok is false if the part is none. reason says why it
// is refused, dropped what of it was there already.
func (d *joined) merge(part []byte) (joined []byte, dropped string, reason string, ok bool) {
	if !d.isFresh(part) {
		return nil, "", "", false
	}
	fresh, _ := members(part)
	more, _ := elementsOf(rawMember(fresh, "sections"))
	p := newParser()
	p.read(part, int64(len(part)))
	if p.doubles+d.parser.doubles > 0 || p.outline.Doubled.Count+d.parser.outline.Doubled.Count > 0 {
		return nil, "", "sections cannot be merged where a name or an id occurs twice", true
	}
	m := &merger{cut: d.cutPlace()}
	m.units, _ = units(m.cut.piece, false)
	old, ok := members(d.closedAt(m.cut.depth))
	if !ok {
		return nil, "", "", false
	}
	joined, reason = m.documents(old, fresh, more)
	return joined, strings.Join(m.notes, "; "), reason, true
}

// documents merges the members of two documents, of which the second has the sections more.
func (m *merger) documents(old, fresh []member, more []json.RawMessage) ([]byte, string) {
	list, isList := elementsOf(rawMember(old, "sections"))
	if !isList {
		return nil, "the sections that have arrived are no list"
	}
	if first := sectionID(more[0]); len(list) > 1 && first != "" && first == sectionID(list[0]) {
		return nil, "it begins like the document itself, but not word for word"
	}
	last := len(list) - 1 // the cut-off section, if the place is in one
	for i, raw := range more {
		s, isObject := members(raw)
		if !isObject {
			return nil, fmt.Sprintf("section %d of the part is no object", i)
		}
		id := stringOf(rawMember(s, "id"))
		at := slices.IndexFunc(list, func(o json.RawMessage) bool {
			return id != "" && sectionID(o) == id || id == "" && equal(o, raw)
		})
		if at < 0 {
			if m.cut.of == sections && len(list)-1 == last {
				m.used = m.completes(raw)
			}
			list = append(list, raw)
			continue
		}
		both, reason := m.section(list[at], s, at == last)
		if reason != "" {
			return nil, fmt.Sprintf("section %q: %s", clip(id, maxWord), reason)
		}
		list[at] = both
	}
	setMember(&old, "sections", joinArray(list))
	if reason := m.scalars(&old, fresh, "sections", m.cut.of == document); reason != "" {
		return nil, reason
	}
	if !m.used && (len(m.units) > 0 || m.cut.due) {
		return nil, fmt.Sprintf("it neither repeats nor completes what is cut off: %s", clip(string(m.cut.piece), maxWord))
	}
	if len(m.units) > 0 {
		m.notes = slices.Insert(m.notes, 0, "the cut-off element "+clip(string(m.cut.piece), maxWord))
	}
	return joinObject(old), ""
}

// scalars adds the members of an object but one to another object, in which they must be equal or missing. open says
// that the text is cut off in the object.
func (m *merger) scalars(old *[]member, more []member, but string, open bool) string {
	for _, n := range more {
		if open && !m.used {
			m.used = m.completes(append(append(quote(n.Key), ':'), n.Raw...))
		}
		switch have := rawMember(*old, n.Key); {
		case n.Key == but:
		case have == nil:
			*old = append(*old, n)
		case !equal(have, n.Raw):
			return fmt.Sprintf("%q is %s already, and %s in the part", clip(n.Key, maxWord), clip(string(have), maxWord),
				clip(string(n.Raw), maxWord))
		}
	}
	return ""
}

// completes reports whether a value begins with all of the cut-off piece.
func (m *merger) completes(raw []byte) bool {
	us, _ := units(raw, false)
	return hasPrefix(us, m.units)
}

// sectionID returns the id of a section; "" if it has none.
func sectionID(raw json.RawMessage) string {
	m, _ := members(raw)
	return stringOf(rawMember(m, "id"))
}

// section adds the members and elements of a section to those of the one with the same id. open says that the text is
// cut off in it.
func (m *merger) section(raw json.RawMessage, more []member, open bool) (json.RawMessage, string) {
	old, _ := members(raw)
	for _, n := range more {
		if (!open || m.cut.of == sections || m.cut.of == document) && rawMember(old, n.Key) == nil {
			return nil, fmt.Sprintf("it is complete and has no %q", clip(n.Key, maxWord))
		}
	}
	if reason := m.scalars(&old, more, "elements", open && m.cut.of == section); reason != "" {
		return nil, reason
	}
	a, b := rawMember(old, "elements"), rawMember(more, "elements")
	if b == nil {
		return joinObject(old), ""
	}
	list, reason := m.elements(elementList(a), elementList(b), open)
	if reason != "" {
		return nil, reason
	}
	all := joinArray(list)
	if len(list) == 1 && firstByte(b) == '{' && (a == nil || firstByte(a) == '{') {
		all = list[0]
	}
	setMember(&old, "elements", all)
	return joinObject(old), ""
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

// quote returns a text as a JSON string, without escaping HTML.
func quote(s string) json.RawMessage {
	b, _ := content.PlainJSON(s) // a string: cannot fail
	return b
}

// equal reports whether two values are the same but for white space and escapes.
func equal(a, b json.RawMessage) bool {
	x, _ := units(a, false)
	y, _ := units(b, false)
	return slices.Equal(x, y)
}

func setMember(list *[]member, key string, raw json.RawMessage) {
	if i := slices.IndexFunc(*list, func(m member) bool { return m.Key == key }); i >= 0 {
		(*list)[i].Raw = raw
	} else {
		*list = append(*list, member{key, raw})
	}
}

func joinObject(list []member) json.RawMessage {
	all := make([][]byte, len(list))
	for i, m := range list {
		all[i] = slices.Concat(quote(m.Key), []byte{':'}, m.Raw)
	}
	return slices.Concat([]byte{'{'}, bytes.Join(all, []byte{','}), []byte{'}'})
}

func joinArray(list []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte{'['}, bytes.Join(rawBytes(list), []byte{','}), []byte{']'})
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
