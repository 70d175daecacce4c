package tools

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// MaxQueries is the maximum number of texts of a [Queries] argument.
const MaxQueries = 32

// Queries is an argument that is one text, or several that one call answers: an array, or an object that names them.
// Unlike [Strings], a string that looks like an array stays one text, because filters and patterns do.
type Queries struct {
	Several bool     // an array or an object, even of one text
	Named   bool     // an object
	Names   []string // of an object, sorted; of an array "1", "2", …; of one text none
	Texts   []string
}

// OneQuery returns the argument that is one text.
func OneQuery(text string) Queries { return Queries{Texts: []string{text}} }

// Text returns all texts, a line each.
func (q Queries) Text() string { return strings.Join(q.Texts, "\n") }

// queriesKind is the kind of a [Queries] argument in messages.
const queriesKind = "string, or an array or object of 1 to 32 strings"

var queriesType = reflect.TypeFor[Queries]()

// queriesSchema is the schema of a [Queries] argument, without the braces around it.
const queriesSchema = `"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"object"}]`

// UnmarshalJSON implements [json.Unmarshaler].
func (q *Queries) UnmarshalJSON(b []byte) (err error) {
	*q = Queries{Several: true}
	var members map[string]string
	switch b[0] {
	case '[':
		err = json.Unmarshal(b, &q.Texts)
		for i := range q.Texts {
			q.Names = append(q.Names, strconv.Itoa(i+1))
		}
	case '{':
		err = json.Unmarshal(b, &members)
		q.Named, q.Names = true, slices.Sorted(maps.Keys(members))
		for _, name := range q.Names {
			q.Texts = append(q.Texts, members[name])
		}
	default:
		*q = OneQuery("")
		return json.Unmarshal(b, &q.Texts[0])
	}
	if n := len(q.Texts); err == nil && (n == 0 || n > MaxQueries) {
		err = errors.New(queriesKind)
	}
	return err
}

// MarshalJSON writes a single text as a string.
func (q Queries) MarshalJSON() ([]byte, error) {
	if !q.Several {
		return json.Marshal(q.Text())
	}
	return json.Marshal(q.Texts)
}
