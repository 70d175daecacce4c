package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is one argument as its struct tags describe it.
type field struct {
	name        string
	required    bool
	kind        string // JSON type, for messages
	enum        []string
	min, max    *float64
	schema      string // of a [Shaped] argument
	description string // its description, in the schema
	help        string
}

// Shaped is an argument with a schema of its own. Its UnmarshalJSON returns the errors for another value.
type Shaped interface {
	// Shape returns the kind of the argument in messages, and its JSON Schema without the braces around it.
	Shape() (kind, schema string)
}

func fieldsOf(t reflect.Type, tool string) []field {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: arguments must be a struct, not %s", tool, t))
	}
	var fields []field
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			panic(fmt.Sprintf("tool %s: argument field %s has no json name", tool, f.Name))
		}
		a := field{
			name: name, required: !strings.Contains(opts, "omitempty"),
			description: f.Tag.Get("jsonschema"), help: f.Tag.Get("help"),
		}
		if shaped, ok := reflect.Zero(f.Type).Interface().(Shaped); ok {
			a.kind, a.schema = shaped.Shape()
		} else {
			a.kind = jsonType(f.Type)
		}
		if e := f.Tag.Get("enum"); e != "" {
			a.enum = strings.Split(e, "|")
		}
		if r := f.Tag.Get("range"); r != "" {
			a.min, a.max = parseBounds(tool, name, r)
		}
		fields = append(fields, a)
	}
	return fields
}

func parseBounds(tool, name, r string) (lo, hi *float64) {
	parse := func(s string) *float64 {
		if s == "" {
			return nil
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(fmt.Sprintf("tool %s: argument %s: bad range %q", tool, name, r))
		}
		return &v
	}
	a, b, _ := strings.Cut(r, ",")
	return parse(a), parse(b)
}

func jsonType(t reflect.Type) string {
	switch t {
	case stringsType:
		return stringsKind
	case queriesType:
		return queriesKind
	case textType:
		return textKind
	case objectType:
		return objectKind
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Map:
		return "object"
	default:
		panic("arguments: no JSON type for " + t.String())
	}
}

// schemaOf returns the JSON Schema of arguments, as short as possible: every conversation pays for each
// word of it. decode rejects unknown names, so the schema does not list additionalProperties.
// It is written by hand because each process does it for each tool: a schema library takes 30 times as long.
func schemaOf(fields []field) json.RawMessage {
	b := []byte(`{"type":"object"`)
	var required []string
	for i, f := range fields {
		b = append(b, []string{`,"properties":{`, `,`}[min(i, 1)]...)
		b = append(append(b, marshal(f.name)...), `:{`...)
		switch f.kind {
		default:
			if f.schema != "" {
				b = append(b, f.schema...)
				break
			}
			b = append(append(b, `"type":`...), marshal(f.kind)...)
		case stringsKind:
			b = append(b, stringsSchema...)
		case queriesKind:
			b = append(b, queriesSchema...)
		case textKind: // other JSON values are accepted too, but not offered
			b = append(b, `"type":"string"`...)
		}
		if f.description != "" {
			b = append(append(b, `,"description":`...), marshal(f.description)...)
		}
		if f.enum != nil {
			b = append(append(b, `,"enum":`...), marshal(f.enum)...)
		}
		if f.min != nil {
			b = append(append(b, `,"minimum":`...), marshal(*f.min)...)
		}
		if f.max != nil {
			b = append(append(b, `,"maximum":`...), marshal(*f.max)...)
		}
		b = append(b, '}')
		if f.required {
			required = append(required, f.name)
		}
	}
	if len(fields) > 0 {
		b = append(b, '}')
	}
	if required != nil {
		b = append(append(b, `,"required":`...), marshal(required)...)
	}
	return append(b, '}')
}

// marshal returns a string, a number or a list of strings as JSON.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("arguments: %v", err)) // a bound that is not a finite number
	}
	return b
}
