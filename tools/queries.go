package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// MaxQueries is the maximum number of texts of a [Queries] argument, and maxQueryName of bytes of each name.
const (
	MaxQueries   = 32
	maxQueryName = 60
)

// Queries is an argument that is one text, or several that one call answers: an array, or an object whose members name
// the texts. Unlike [Strings], a string that looks like an array stays one text, because filters and patterns do.
type Queries struct {
	Several bool // an array or an object, even of one text
	Names   []string
	Texts   []string // in the order given; Names has the name of each: "1", "2", … of an array, "" of one text
	named   bool     // an object
}

// OneQuery returns the argument that is one text.
func OneQuery(text string) Queries { return Queries{Names: []string{""}, Texts: []string{text}} }

// Text returns the text of an argument that is one; "" if there is none.
func (q Queries) Text() string {
	if len(q.Texts) == 0 {
		return ""
	}
	return q.Texts[0]
}

// All returns all texts as one, a line each, for what looks for words in them.
func (q Queries) All() string { return strings.Join(q.Texts, "\n") }

// From returns the argument without its first n texts.
func (q Queries) From(n int) Queries {
	q.Names, q.Texts = q.Names[n:], q.Texts[n:]
	return q
}

// Numbered reports whether the texts are those of an array, so that their names are numbers.
func (q Queries) Numbered() bool { return q.Several && !q.named }

// queriesKind is the kind of a [Queries] argument in messages.
const queriesKind = "string, or array or object of strings"

var queriesType = reflect.TypeFor[Queries]()

// queriesSchema is the schema of a [Queries] argument, without the braces around it.
const queriesSchema = `"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"object"}]`

// UnmarshalJSON implements [json.Unmarshaler].
func (q *Queries) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*q = OneQuery(one)
		return nil
	}
	*q = Queries{Several: true, named: len(b) > 0 && b[0] == '{'}
	d := json.NewDecoder(bytes.NewReader(b))
	_, _ = d.Token()
	for d.More() {
		name := strconv.Itoa(len(q.Texts) + 1)
		if q.named {
			t, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = t.(string)
		}
		var text any
		if err := d.Decode(&text); err != nil {
			return err
		}
		s, isText := text.(string)
		switch {
		case !isText:
			return fmt.Errorf("%s is not a string", content.ClipBytes(name, maxQueryName))
		case slices.Contains(q.Names, name):
			return fmt.Errorf("%q is named twice", content.ClipBytes(name, maxQueryName))
		case name == "" || len(name) > maxQueryName || content.VisibleLine(name) != name:
			return fmt.Errorf("%q cannot be a name: use 1 to %d visible characters", content.ClipBytes(name, maxQueryName),
				maxQueryName)
		}
		q.Names, q.Texts = append(q.Names, name), append(q.Texts, s)
	}
	switch n := len(q.Texts); {
	case n == 0:
		return errors.New("it is empty")
	case n > MaxQueries:
		return fmt.Errorf("it has %d members; one call takes at most %d", n, MaxQueries)
	}
	return nil
}

// MarshalJSON writes the argument in the form in which it was given.
func (q Queries) MarshalJSON() ([]byte, error) {
	switch {
	case !q.Several:
		return json.Marshal(q.Text())
	case !q.named:
		return json.Marshal(q.Texts)
	}
	b := []byte{'{'}
	for i, name := range q.Names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, marshal(name)...), ':'), marshal(q.Texts[i])...)
	}
	return append(b, '}'), nil
}

// checkQueries returns an error if the value is not a string, or an array or object of strings.
func (f field) checkQueries(v json.RawMessage, fields []field) error {
	err := errors.New("not " + content.ClipBytes(string(v), 200))
	if t := jsonTypeOf(v); t == "string" || t == "array" || t == "object" {
		if err = json.Unmarshal(v, new(Queries)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("argument %q must be a string, or an array or object of strings: %w; valid arguments: %s", f.name,
		err, fieldNames(fields))
}
