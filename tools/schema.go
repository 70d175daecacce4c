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
	name     string
	required bool
	kind     string // JSON type, for messages
	enum     []string
	min, max *float64
	says     string // its description, in the schema
	help     string
}

func describe(t reflect.Type, tool string) []field {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("tool %s: arguments must be a struct, not %s", tool, t))
	}
	var fields []field
	for f := range t.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			panic(fmt.Sprintf("tool %s: argument field %s has no json name", tool, f.Name))
		}
		a := field{name: name, required: !strings.Contains(opts, "omitempty"), kind: jsonType(f.Type), says: f.Tag.Get("jsonschema"), help: f.Tag.Get("help")}
		if e := f.Tag.Get("enum"); e != "" {
			a.enum = strings.Split(e, "|")
		}
		if r := f.Tag.Get("range"); r != "" {
			a.min, a.max = bounds(tool, name, r)
		}
		fields = append(fields, a)
	}
	return fields
}

func bounds(tool, name, r string) (lo, hi *float64) {
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

// schemaOf describes arguments as tersely as it can be: every client pays for each
// word of it in every conversation. Unknown names are refused by decode, so additionalProperties is not listed.
// It is written by hand since each process does it for each tool: a library that can describe any type takes 30 times as long.
func schemaOf(fields []field) json.RawMessage {
	b := []byte(`{"type":"object"`)
	var required []string
	for i, f := range fields {
		b = append(b, []string{`,"properties":{`, `,`}[min(i, 1)]...)
		b = append(append(b, quoted(f.name)...), `:{"type":`...)
		b = append(b, quoted(f.kind)...)
		if f.says != "" {
			b = append(append(b, `,"description":`...), quoted(f.says)...)
		}
		if f.enum != nil {
			b = append(append(b, `,"enum":`...), quoted(f.enum)...)
		}
		if f.min != nil {
			b = append(append(b, `,"minimum":`...), quoted(*f.min)...)
		}
		if f.max != nil {
			b = append(append(b, `,"maximum":`...), quoted(*f.max)...)
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
		b = append(append(b, `,"required":`...), quoted(required)...)
	}
	return append(b, '}')
}

// quoted is a text, a number or a list of texts as JSON has it.
func quoted(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("arguments: %v", err)) // a bound that is no finite number
	}
	return b
}
