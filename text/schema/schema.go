// Package schema answers two questions about a JSON Schema without validating: may a member or an element of a value be
// a string, and does a validator check a value in few steps?
package schema

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Schema is a whole schema. It does not validate: so a pattern that Go cannot compile, or a $ref to another document,
// does not matter here. Its methods take schemas within it, as decoded from JSON. It is not safe for concurrent use.
type Schema struct {
	Root any // decoded from JSON; nil: nothing is known of the values
	left int // schemas that may still be visited for this value
}

// Parse returns the schema of a JSON text; one of which nothing is known if it is no JSON.
func Parse(text []byte) (s Schema) {
	if json.Unmarshal(text, &s.Root) != nil {
		s.Root = nil
	}
	return s
}

// maxVisited limits the schemas that are visited for one value: a schema may refer to itself.
const maxVisited = 10_000

// Allows reports whether a schema within the root allows a string, as far as type, enum, const, $ref, allOf, anyOf and
// oneOf say. A schema without a type allows none if it has items, prefixItems, properties or required. Of the values of
// enum and const, only those for which matches returns true count.
func (s *Schema) Allows(schema any, matches func(value any) bool) bool {
	s.left = maxVisited
	return s.visitAllows(schema, matches)
}

func (s *Schema) visitAllows(schema any, matches func(value any) bool) bool {
	of, ok := s.visit(schema)
	if !ok {
		return schema != false
	}
	has := func(keyword string) bool { return of[keyword] != nil }
	switch kinds := of["type"].(type) {
	case string:
		ok = kinds == "string"
	case []any:
		ok = slices.Contains(kinds, any("string"))
	default:
		ok = !slices.ContainsFunc([]string{"items", "prefixItems", "properties", "required"}, has)
	}
	if values, found := of["enum"].([]any); found {
		ok = ok && slices.ContainsFunc(values, matches)
	}
	if value, found := of["const"]; found {
		ok = ok && matches(value)
	}
	allows := func(one any) bool { return s.visitAllows(one, matches) }
	if ref, found := of["$ref"].(string); found {
		ok = ok && allows(s.at(ref))
	}
	if parts, found := of["allOf"].([]any); found {
		ok = ok && !slices.ContainsFunc(parts, func(one any) bool { return !allows(one) })
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if branches, found := of[keyword].([]any); found {
			ok = ok && slices.ContainsFunc(branches, allows)
		}
	}
	return ok
}

// IsBase64 reports whether a schema says that its strings are bytes in base64, or its description does.
func (s *Schema) IsBase64(schema any, does func(description string) bool) bool {
	return s.inner(schema, func(of map[string]any) any {
		text, _ := of["description"].(string)
		if of["contentEncoding"] == "base64" || of["format"] == "byte" || of["format"] == "base64" ||
			does(text) {
			return of
		}
		return nil
	}) != nil
}

// Member returns the schema of a member of an object.
func (s *Schema) Member(schema any, name string) any {
	return s.inner(schema, func(of map[string]any) any {
		properties, _ := of["properties"].(map[string]any)
		if one, ok := properties[name]; ok {
			return one
		}
		if others, ok := of["additionalProperties"].(map[string]any); ok {
			return others
		}
		return nil
	})
}

// Element returns the schema of an element of an array.
func (s *Schema) Element(schema any, i int) any {
	return s.inner(schema, func(of map[string]any) any {
		for _, keyword := range []string{"prefixItems", "items"} { // items is a list in draft 7
			if list, ok := of[keyword].([]any); ok && i < len(list) {
				return list[i]
			}
		}
		if others, ok := of["items"].(map[string]any); ok {
			return others
		}
		return nil
	})
}

// inner calls own with a schema and with all schemas that it combines. It returns a schema that allows what any of the
// results allows; nil if there are none.
func (s *Schema) inner(schema any, own func(map[string]any) any) any {
	s.left = maxVisited
	var all []any
	var visit func(any)
	visit = func(schema any) {
		of, ok := s.visit(schema)
		if !ok {
			return
		}
		if one := own(of); one != nil {
			all = append(all, one)
		}
		if ref, ok := of["$ref"].(string); ok {
			visit(s.at(ref))
		}
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			parts, _ := of[keyword].([]any)
			for i := 0; i < len(parts) && s.left > 0; i++ {
				visit(parts[i])
			}
		}
	}
	if visit(schema); all == nil {
		return nil
	}
	return map[string]any{"anyOf": all}
}

// visit returns the keywords of a schema; ok is false if it is no object, or if too many were visited.
func (s *Schema) visit(schema any) (of map[string]any, ok bool) {
	s.left--
	of, ok = schema.(map[string]any)
	return of, ok && s.left >= 0
}

// at returns the schema at a reference such as #/$defs/Item; nil if it is not within the root.
func (s *Schema) at(ref string) any {
	pointer, err := url.PathUnescape(ref)
	if err != nil || pointer != "#" && !strings.HasPrefix(pointer, "#/") {
		return nil
	}
	one := s.Root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch of := one.(type) {
		case map[string]any:
			one = of[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(of) {
				return nil
			}
			one = of[i]
		default:
			return nil
		}
	}
	return one
}

// maxSteps limits the steps in which a value is checked.
const maxSteps = 200_000

// Bounded reports whether a value, decoded from JSON, is checked by the whole schema in few steps. A schema may refer
// to itself, or stand for many others at each level of the value: the stack of a validator has no bound, and it cannot
// be stopped. Where Bounded cannot tell, because a reference leads elsewhere, it reports false.
func (s *Schema) Bounded(value any) bool {
	s.left = maxSteps
	return s.walk(s.Root, value)
}

// walk takes a step for each schema and each value that a validator would compare, or more.
func (s *Schema) walk(schema, value any) bool {
	if s.left--; s.left < 0 {
		return false
	}
	of, _ := schema.(map[string]any)
	members, _ := value.(map[string]any)
	elements, _ := value.([]any)
	for keyword, below := range of {
		ok := true
		switch keyword {
		case "$ref":
			ref, _ := below.(string)
			target := s.at(ref)
			ok = target != nil && s.walk(target, value)
		case "$dynamicRef", "$recursiveRef":
			ok = false
		case "allOf", "anyOf", "oneOf":
			parts, _ := below.([]any)
			ok = s.all(parts, value)
		case "not", "if", "then", "else":
			ok = s.walk(below, value)
		case "dependentSchemas", "dependencies":
			parts, _ := below.(map[string]any)
			ok = s.all(slices.Collect(maps.Values(parts)), value)
		case "properties":
			parts, _ := below.(map[string]any)
			for name, one := range members {
				if part, found := parts[name]; found {
					ok = ok && s.walk(part, one)
				}
			}
		case "patternProperties":
			parts, _ := below.(map[string]any)
			for _, one := range members {
				ok = ok && s.all(slices.Collect(maps.Values(parts)), one)
			}
		case "additionalProperties", "unevaluatedProperties":
			for _, one := range members {
				ok = ok && s.walk(below, one)
			}
		case "propertyNames":
			for name := range members {
				ok = ok && s.walk(below, name)
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
			parts, list := below.([]any)
			for _, one := range elements {
				if list {
					ok = ok && s.all(parts, one)
				} else {
					ok = ok && s.walk(below, one)
				}
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// all walks over several schemas for one value.
func (s *Schema) all(parts []any, value any) bool {
	return !slices.ContainsFunc(parts, func(one any) bool { return !s.walk(one, value) })
}
