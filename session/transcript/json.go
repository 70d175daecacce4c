package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Span is a part of the bytes of a transcript, or of one of its lines.
type Span struct{ Start, End int }

// node is a JSON value and where it stands.
type node struct {
	Span
	kind    byte   // one of {["0; 0 is a number, true, false or null
	text    string // of a string its first maxKept bytes
	size    int    // of a string: bytes of its whole text
	members []member
	items   []*node
	literal int // of a string: its number among the string values of the text, from 0
}

type member struct {
	name  string
	value *node
}

// Limits of a value.
const (
	// maxDepth bounds how deep values may be nested: encoding/json allows 10,000, and each level takes a stack frame.
	maxDepth = 1000

	// maxValues bounds the values of a line or document: each takes some hundred bytes while it is read.
	maxValues = 2_000_000

	// maxKept is how many bytes of a string are kept, more than ids have.
	maxKept = 1 << 10
)

// parser builds nodes from tokens. encoding/json says what is valid; only the places of values are added.
type parser struct {
	text     Bytes
	tokens   *json.Decoder
	literals int
	values   int

	window   []byte // a part of the text
	windowAt int
}

// errTooMany is returned for a line or document with too many values.
var errTooMany = fmt.Errorf("a line or document has over %d values", maxValues)

// parse returns the one JSON value of a text.
func parse(text Bytes) (*node, error) {
	p := &parser{text: text, window: make([]byte, 0, min(text.Size(), 4<<10))}
	p.tokens = json.NewDecoder(io.NewSectionReader(text, 0, text.Size()))
	p.tokens.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the value")
	}
	return n, nil
}

// start returns where the next token begins.
func (p *parser) start() int {
	at := int(p.tokens.InputOffset())
	for {
		c, ok := p.byteAt(at)
		if !ok || bytes.IndexByte([]byte(" \t\r\n,:"), c) < 0 {
			return at
		}
		at++
	}
}

// byteAt returns a byte of the text; false at its end.
func (p *parser) byteAt(at int) (byte, bool) {
	if at < p.windowAt || at >= p.windowAt+len(p.window) {
		n, _ := p.text.ReadAt(p.window[:cap(p.window)], int64(at)) // an error ends the tokens too
		p.window, p.windowAt = p.window[:n], at
		if n == 0 {
			return 0, false
		}
	}
	return p.window[at-p.windowAt], true
}

func (p *parser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	if p.values++; p.values > maxValues {
		return nil, errTooMany
	}
	n := &node{kind: '0'}
	n.Start = p.start()
	t, err := p.tokens.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n.kind = byte(t)
		if err := p.children(n, depth); err != nil {
			return nil, err
		}
	case string:
		n.kind, n.size, n.literal = '"', len(t), p.literals
		if n.text = t; len(t) > maxKept {
			n.text = strings.Clone(t[:maxKept])
		}
		p.literals++
	case json.Number:
		n.text = string(t)
	case bool:
		n.text = fmt.Sprint(t)
	}
	n.End = int(p.tokens.InputOffset())
	return n, nil
}

// children reads the members of an object or the elements of an array, and its end.
func (p *parser) children(n *node, depth int) error {
	for p.tokens.More() {
		var name json.Token
		var err error
		if n.kind == '{' {
			if name, err = p.tokens.Token(); err != nil {
				return err
			}
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if key, ok := name.(string); ok {
			n.members = append(n.members, member{key, value})
		} else {
			n.items = append(n.items, value)
		}
	}
	_, err := p.tokens.Token()
	return err
}

// get returns the member with a path of names; nil if it is missing. A nil node has no members.
func (n *node) get(names ...string) *node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		var found *node
		for _, m := range n.members { // of duplicates the last one counts, as for encoding/json
			if m.name == name {
				found = m.value
			}
		}
		n = found
	}
	return n
}

// str returns the text of a string, its first maxKept bytes; "" for anything else.
func (n *node) str(names ...string) string {
	if v := n.get(names...); v != nil && v.kind == '"' {
		return v.text
	}
	return ""
}

// sizeOf returns the bytes of the text of a string; 0 for anything else.
func (n *node) sizeOf(names ...string) int {
	if v := n.get(names...); v != nil && v.kind == '"' {
		return v.size
	}
	return 0
}

// isTrue reports whether a member is true.
func (n *node) isTrue(names ...string) bool {
	v := n.get(names...)
	return v != nil && v.kind == '0' && v.text == "true"
}

// elements returns the elements of a member that is an array.
func (n *node) elements(names ...string) []*node {
	if v := n.get(names...); v != nil && v.kind == '[' {
		return v.items
	}
	return nil
}

// stringsIn returns all string values in a value, in their order.
func (n *node) stringsIn() (all []*node) {
	if n == nil {
		return nil
	}
	if n.kind == '"' {
		return []*node{n}
	}
	for _, m := range n.members {
		all = append(all, m.value.stringsIn()...)
	}
	for _, item := range n.items {
		all = append(all, item.stringsIn()...)
	}
	return all
}
