package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// FieldsOf returns the sorted names of the members that a filter reads by their names: .a, ."a", .["a"], {a}, has("a"),
// getpath(["a"]) and as {a: $x}. It returns none for a filter that does not parse.
func FieldsOf(filter string) []string {
	names := map[string]bool{}
	if q, err := gojq.Parse(filter); err == nil {
		addFields(reflect.ValueOf(q), names, false)
	}
	return slices.Sorted(maps.Keys(names))
}

// addFields adds the names that a part of a filter reads. With texts, each string literal is such a name.
func addFields(v reflect.Value, names map[string]bool, texts bool) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			addFields(v.Index(i), names, texts)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		switch x := v.Interface().(type) {
		case *gojq.Index:
			if name, ok := keyOf(x); ok {
				names[name] = true
			}
		case *gojq.ObjectKeyVal:
			if x.Val == nil && x.KeyString != nil {
				names[x.KeyString.Str] = true
			} else if x.Val == nil {
				names[x.Key] = true
			}
		case *gojq.PatternObject:
			if names[strings.TrimPrefix(x.Key, "$")] = true; x.KeyString != nil {
				names[x.KeyString.Str] = true
			}
		case *gojq.Func:
			texts = texts || x.Name == "has" || x.Name == "getpath"
		case *gojq.String:
			if texts {
				names[x.Str] = true
			}
		}
		for i := range v.Elem().NumField() {
			addFields(v.Elem().Field(i), names, texts)
		}
	}
}
