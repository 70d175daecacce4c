// Package jsontree parses JSON into a tree of values that know where they stand in the text, so that one of them can be
// read again or replaced and every other byte stays. Long strings are not kept.
package jsontree

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Span is a part of a text, in bytes.
type Span struct{ Start, End int }

// Node is a JSON value. A nil node is a value that is missing: its methods return nothing.
type Node struct {
	Span
	Kind    jsontext.Kind // one of {["0tfn
	Text    string        // of a string its first 1,024 bytes; of a number, true, false and null how it is written
	Size    int           // of a string: bytes of its whole text
	Members []Member
	Items   []*Node
	Number  int // of a string: its number among the string values of the text, from 0
}

// Member is a member of an object.
type Member struct {
	Name  string
	Begin int // of the name, with its quotes
	Value *Node
}

// Limits of a value.
const (
	// maxDepth bounds how deep values may be nested, because each level takes a stack frame.
	maxDepth = 1000

	// maxValues bounds the values of a text: each takes some hundred bytes.
	maxValues = 2_000_000

	// maxKept is how many bytes of a string are kept, more than ids have.
	maxKept = 1 << 10
)

// ErrTooMany is returned for a text with too many values, ErrFollows for a text with something behind its value.
var (
	ErrTooMany = fmt.Errorf("a line or document has over %d values", maxValues)
	ErrFollows = errors.New("text follows the value")
)

// parser builds nodes from the tokens of a text.
type parser struct {
	tokens  *jsontext.Decoder
	text    []byte // of the last string
	strings int
	values  int
}

// Parse returns the one JSON value of a text. Strings that are not UTF-8 are accepted, as by encoding/json. Names that
// stand twice in an object are accepted only if an option says so.
func Parse(text io.Reader, options ...jsontext.Options) (*Node, error) {
	p := &parser{tokens: jsontext.NewDecoder(text, append(options, jsontext.AllowInvalidUTF8(true))...)}
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, ErrFollows
	}
	return n, nil
}

func (p *parser) value(depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	if p.values++; p.values > maxValues {
		return nil, ErrTooMany
	}
	n := &Node{Kind: p.tokens.PeekKind()}
	if n.Kind == '{' || n.Kind == '[' {
		return n, p.children(n, depth)
	}
	raw, err := p.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	n.End = int(p.tokens.InputOffset())
	n.Start = n.End - len(raw)
	if n.Kind != '"' {
		n.Text = string(raw)
		return n, nil
	}
	p.text, _ = jsontext.AppendUnquote(p.text[:0], raw) // as Unquote does
	n.Size, n.Number = len(p.text), p.strings
	n.Text = string(p.text[:min(len(p.text), maxKept)])
	p.strings++
	return n, nil
}

// children reads an object with its members, or an array with its elements.
func (p *parser) children(n *Node, depth int) error {
	_, err := p.tokens.ReadToken()
	n.Start = int(p.tokens.InputOffset()) - 1
	for end := n.Kind + 2; err == nil && p.tokens.PeekKind() != end; { // ']' is two characters after '['
		var m Member
		if n.Kind == '{' {
			var name jsontext.Value
			if name, err = p.tokens.ReadValue(); err != nil {
				return err
			}
			m.Name, m.Begin = Unquote(name), int(p.tokens.InputOffset())-len(name)
		}
		if m.Value, err = p.value(depth + 1); err != nil {
			return err
		}
		if n.Kind == '{' {
			n.Members = append(n.Members, m)
		} else {
			n.Items = append(n.Items, m.Value)
		}
	}
	if err == nil {
		_, err = p.tokens.ReadToken()
	}
	n.End = int(p.tokens.InputOffset())
	return err
}

// Unquote returns the text of a JSON string; U+FFFD stands for what is not UTF-8.
func Unquote(raw []byte) string {
	text, _ := jsontext.AppendUnquote(nil, raw) // the error says that it has U+FFFD
	return string(text)
}

// Get returns the member at a path of names; nil if it is missing.
func (n *Node) Get(names ...string) *Node {
	for _, name := range names {
		if n == nil {
			return nil
		}
		var found *Node
		for _, m := range n.Members { // of duplicates the last one counts, as for encoding/json
			if m.Name == name {
				found = m.Value
			}
		}
		n = found
	}
	return n
}

// IsString reports whether a member is a string.
func (n *Node) IsString(names ...string) bool {
	v := n.Get(names...)
	return v != nil && v.Kind == '"'
}

// Str returns the text of a string, its first 1,024 bytes; "" for anything else.
func (n *Node) Str(names ...string) string {
	if n.IsString(names...) {
		return n.Get(names...).Text
	}
	return ""
}

// IsTrue reports whether a member is true.
func (n *Node) IsTrue(names ...string) bool {
	v := n.Get(names...)
	return v != nil && v.Kind == 't'
}

// IsNull reports whether a member is missing or null.
func (n *Node) IsNull(names ...string) bool {
	v := n.Get(names...)
	return v == nil || v.Kind == 'n'
}

// Elements returns the elements of a member that is an array.
func (n *Node) Elements(names ...string) []*Node {
	if v := n.Get(names...); v != nil {
		return v.Items
	}
	return nil
}

// Strings returns all string values in a value, in their order.
func (n *Node) Strings() (all []*Node) {
	if n == nil {
		return nil
	}
	if n.Kind == '"' {
		return []*Node{n}
	}
	for _, m := range n.Members {
		all = append(all, m.Value.Strings()...)
	}
	for _, item := range n.Items {
		all = append(all, item.Strings()...)
	}
	return all
}
