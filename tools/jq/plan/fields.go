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
	add := func(node any) {
		switch x := node.(type) {
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
			if x.Name == "has" || x.Name == "getpath" {
				eachNode(reflect.ValueOf(x.Args), func(node any) {
					if text, ok := node.(*gojq.String); ok {
						names[text.Str] = true
					}
				})
			}
		}
	}
	if q, err := gojq.Parse(filter); err == nil {
		eachNode(reflect.ValueOf(q), add)
	}
	return slices.Sorted(maps.Keys(names))
}

// eachNode calls visit with each pointer in a part of a filter.
func eachNode(v reflect.Value, visit func(node any)) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			eachNode(v.Index(i), visit)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		visit(v.Interface())
		for i := range v.Elem().NumField() {
			eachNode(v.Elem().Field(i), visit)
		}
	}
}
