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
	err = t.each(func(e *xmlElement) error {
		if n := len(t.path); n > len(above) || !slices.Equal(t.path, above[:n]) {
			if err := t.tree(e); err != nil {
				return err
			}
		} else if len(e.Attr) == 0 {
			return nil
		}
		name := xmlName(e.Name)
		if sink.Pointer != nil {
			e.mark(sink.Pointer, member("", name))
		}
		json = append(record.Quote(append(json[:0], '{'), name), ':')
		json = append(e.appendJSON(json), '}')
		return sink.Value(int64(e.line), json)
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
	xml.StartElement
	line     int
	text     []byte
	children []*xmlElement
}

// grouped returns the children of each name, in order of first occurrence.
func (e *xmlElement) grouped() (groups [][]*xmlElement) {
	numbers := map[xml.Name]int{}
	for _, c := range e.children {
		n, known := numbers[c.Name]
		if !known {
			n = len(groups)
			numbers[c.Name], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], c)
	}
	return groups
}

// tree reads the rest of an element; with an error, as far as it could.
func (t *elements) tree(e *xmlElement) error {
	if t.count++; t.count > maxElements {
		return fmt.Errorf("line %d: a record has more than %d elements; slice and grep read its text", e.line, maxElements)
	}
	for {
		token, line, err := t.next()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			child := &xmlElement{StartElement: token, line: line}
			e.children = append(e.children, child)
			if err := t.tree(child); err != nil {
				return err
			}
		case xml.CharData:
			e.text = append(e.text, token...)
		case xml.EndElement:
			if len(e.children) > 0 {
				e.text = bytes.Trim(e.text, " \t\r\n")
			}
			return nil
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
	for _, a := range e.Attr {
		name("@" + xmlName(a.Name))
		b = record.Quote(b, a.Value)
	}
	if len(e.text) > 0 {
		name("#text")
		b = record.Quote(b, string(e.text))
	}
	for _, all := range e.grouped() {
		name(xmlName(all[0].Name))
		b = append(b, '[')
		for i, c := range all {
			if i > 0 {
				b = append(b, ',')
			}
			b = c.appendJSON(b)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// mark reports the lines of an element and of those in it.
func (e *xmlElement) mark(pointer func(int64, string), at string) {
	pointer(int64(e.line), at)
	before := map[xml.Name]int{} // children of that name
	for _, c := range e.children {
		c.mark(pointer, element(member(at, xmlName(c.Name)), before[c.Name]))
		before[c.Name]++
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
func (t *elements) each(open func(e *xmlElement) error) error {
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
			if err := open(&xmlElement{StartElement: token, line: line}); err != nil {
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
	var seen []map[string]bool // names of the children of each open element
	for depth > 1 {
		token, _, err := t.next()
		if err != nil {
			break
		}
		n := len(t.path) - 1 // elements around this one
		if _, ok := token.(xml.StartElement); !ok || n >= depth {
			continue
		}
		if seen = append(seen[:n], map[string]bool{}); n == 0 {
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
