package values

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of reading XML.
const (
	xmlAhead    = 1 << 20 // bytes at the start that decide which element is the record
	maxElements = 200_000 // of one record
	maxNames    = 5_000   // of the children of one element: each child is compared with them
)

// XML reads the elements of an XML text. The record is the shallowest element that is repeated, as far as the first MiB
// shows; the elements around it that hold no records are records too, so that nothing is left out, and an element
// around it that has attributes is one with these alone. A text without a repeated element is one record.
//
// A record is {"name": element}, an element {"@attribute": "…", "#text": "…", "child": [element, …]}. Children are
// always arrays, in the order of their first occurrence; the order among different names is lost. White space around
// children is dropped. Names keep their prefixes. Comments and processing instructions are dropped. Entities that a
// DTD declares are errors.
var XML = guarded("XML", readXML)

func readXML(ctx context.Context, r io.Reader, sink Sink) error {
	in := bufio.NewReaderSize(r, xmlAhead)
	start, err := in.Peek(xmlAhead)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	t, json := newElements(in), []byte(nil)
	above, repeated := recordPath(start)
	if repeated != "" {
		t.add("the records are the elements in <%s>, where <%s> is repeated", content.Clip(strings.Join(above, "><"), 100),
			content.Clip(repeated, 100))
	}
	err = t.each(func(start xml.StartElement, line int) (err error) {
		e := &xmlElement{line: line, attributes: start.Attr}
		if n := len(t.path); n > len(above) || !slices.Equal(t.path, above[:n]) {
			e, err = t.tree(start, line)
		} else if len(e.attributes) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		name := xmlName(start.Name)
		if sink.Pointer != nil {
			e.mark(sink.Pointer, member("", name))
		}
		json = append(record.Quote(append(json[:0], '{'), name), ':')
		json = append(e.appendJSON(json), '}')
		return sink.Value(int64(line), json)
	})
	if err == nil && t.root == "" {
		err = errors.New("it has no element, so it is not XML")
	}
	if repeated == "" {
		t.add("the record is <%s>, because no element in it is repeated", content.Clip(t.root, 100))
	}
	return cmp.Or(err, t.err())
}

// xmlElement is an element of a record.
type xmlElement struct {
	line       int
	attributes []xml.Attr
	text       []byte
	children   []xmlChildren // in order of first occurrence
}

// xmlChildren are the children of one name.
type xmlChildren struct {
	name string
	all  []*xmlElement
}

// child returns the children of a name.
func (e *xmlElement) child(name string) []*xmlElement {
	for _, c := range e.children {
		if c.name == name {
			return c.all
		}
	}
	return nil
}

// addChild adds a child. It looks first at the name of the one before, because most lists have one name.
func (e *xmlElement) addChild(name string, child *xmlElement) {
	for i := len(e.children) - 1; i >= 0; i-- {
		if e.children[i].name == name {
			e.children[i].all = append(e.children[i].all, child)
			return
		}
	}
	e.children = append(e.children, xmlChildren{name, []*xmlElement{child}})
}

// tree reads the rest of an element. With an error it returns what it read.
func (t *elements) tree(start xml.StartElement, line int) (*xmlElement, error) {
	if t.count++; t.count > maxElements {
		return &xmlElement{}, fmt.Errorf("line %d: a record has more than %d elements; slice and grep read its text", line, maxElements)
	}
	e := &xmlElement{line: line, attributes: start.Attr}
	for {
		token, line, err := t.next()
		if err != nil {
			return e, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			child, err := t.tree(token, line)
			e.addChild(xmlName(token.Name), child)
			if err == nil && len(e.children) > maxNames {
				err = fmt.Errorf("line %d: the children of an element have more than %d names; slice and grep read its text",
					line, maxNames)
			}
			if err != nil {
				return e, err
			}
		case xml.CharData:
			e.text = append(e.text, token...)
		case xml.EndElement:
			if len(e.children) > 0 {
				e.text = bytes.Trim(e.text, " \t\r\n")
			}
			return e, nil
		}
	}
}

func (e *xmlElement) appendJSON(b []byte) []byte {
	b = append(b, '{')
	start := len(b)
	name := func(name string) {
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(record.Quote(b, name), ':')
	}
	for _, a := range e.attributes {
		name("@" + xmlName(a.Name))
		b = record.Quote(b, a.Value)
	}
	if len(e.text) > 0 {
		name("#text")
		b = record.Quote(b, string(e.text))
	}
	for _, child := range e.children {
		name(child.name)
		b = append(b, '[')
		for i, c := range child.all {
			if i > 0 {
				b = append(b, ',')
			}
			b = c.appendJSON(b)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// mark reports the lines of an element and of those in it, in the order of the text.
func (e *xmlElement) mark(pointer func(int64, string), at string) {
	type place struct {
		line int
		at   string
	}
	var all []place
	var walk func(e *xmlElement, at string)
	walk = func(e *xmlElement, at string) {
		all = append(all, place{e.line, at})
		for _, child := range e.children {
			for i, c := range child.all {
				walk(c, element(member(at, child.name), i))
			}
		}
	}
	walk(e, at)
	slices.SortStableFunc(all, func(a, b place) int { return a.line - b.line })
	for _, p := range all {
		pointer(int64(p.line), p.at)
	}
}

// xmlName returns a name with its prefix, as it is written.
func xmlName(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// elements reads the tokens of XML, and checks that elements nest.
type elements struct {
	remarks
	in      *bounded
	decoder *xml.Decoder
	path    []string // names of the open elements
	root    string   // name of the root element, once it was read
	count   int      // of the elements of the record
}

var xmlVersion = content.Pattern(`^\s*<\?xml\s+version\s*=\s*["']1\.[0-9]`)

func newElements(r io.Reader) *elements {
	text := bufio.NewReader(r)
	start, _ := text.Peek(256)                          // an error comes again
	if at := xmlVersion().FindIndex(start); at != nil { // the decoder refuses 1.1, which only allows more characters
		start[at[1]-1] = '0'
	}
	in := &bounded{r: text, separators: map[string]int{"=": 1}}
	d := xml.NewDecoder(in)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // the text is UTF-8 already
	return &elements{in: in, decoder: d}
}

// next returns the next start, end or text and its line.
func (t *elements) next() (xml.Token, int, error) {
	for {
		line, _ := t.decoder.InputPos()
		token, err := t.decoder.RawToken()
		switch {
		case t.in.failed != nil:
			return nil, 0, t.in.failed
		case errors.Is(err, io.EOF) && len(t.path) > 0:
			return nil, 0, fmt.Errorf("line %d: the text ends within <%s>", line, t.path[len(t.path)-1])
		case errors.Is(err, io.EOF):
			return nil, 0, io.EOF
		case err != nil:
			return nil, 0, fmt.Errorf("it is not valid XML: %s", strings.TrimPrefix(err.Error(), "XML syntax error on "))
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(t.path) >= maxDepth {
				return nil, 0, fmt.Errorf("line %d: elements are nested more than %d deep", line, maxDepth)
			}
			if t.root != "" && len(t.path) == 0 {
				return nil, 0, fmt.Errorf("line %d: <%s> follows the root element", line, xmlName(token.Name))
			}
			seen := make(map[xml.Name]bool, len(token.Attr))
			for _, a := range token.Attr {
				if seen[a.Name] {
					return nil, 0, fmt.Errorf("line %d: <%s> has the attribute %s twice", line, xmlName(token.Name), xmlName(a.Name))
				}
				seen[a.Name] = true
			}
			t.path = append(t.path, xmlName(token.Name))
			t.root = t.path[0]
			return token, line, nil
		case xml.EndElement:
			name, n := xmlName(token.Name), len(t.path)-1
			if n < 0 || t.path[n] != name {
				return nil, 0, fmt.Errorf("line %d: </%s> does not end the open element", line, name)
			}
			t.path = t.path[:n]
			return token, line, nil
		case xml.CharData:
			if len(t.path) > 0 {
				return token, line, nil
			}
			if len(bytes.TrimSpace(token)) > 0 {
				return nil, 0, fmt.Errorf("line %d: text outside of the root element", line)
			}
		}
	}
}

// each calls open for each element that the calls before did not read. Text between them is noted.
func (t *elements) each(open func(e xml.StartElement, line int) error) error {
	outside := 0
	for {
		token, line, err := t.next()
		switch {
		case errors.Is(err, io.EOF):
			if outside > 0 {
				t.add("text between the records is left out, at line %d first", outside)
			}
			return nil
		case err != nil:
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			t.in.reset()
			t.count = 0
			if err := open(token, line); err != nil {
				return err
			}
		case xml.CharData:
			if outside == 0 && len(bytes.TrimSpace(token)) > 0 {
				outside = line
			}
		}
	}
}

// recordPath returns the names of the elements around the shallowest element that is repeated within another, and its
// own; "" if none is.
func recordPath(start []byte) (above []string, name string) {
	t, depth := newElements(bytes.NewReader(start)), maxDepth+1
	seen := []map[string]bool{}
	for depth > 1 {
		token, _, err := t.next()
		if err != nil {
			break
		}
		if _, ok := token.(xml.StartElement); !ok {
			continue
		}
		n := len(t.path) - 1 // elements around this one
		if n >= depth {
			continue
		}
		seen = append(seen[:min(n, len(seen))], map[string]bool{})
		if n == 0 {
			continue
		}
		if around := seen[n-1]; around[t.path[n]] {
			above, name, depth = slices.Clone(t.path[:n]), t.path[n], n
		} else {
			around[t.path[n]] = true
		}
	}
	return above, name
}
