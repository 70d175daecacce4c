// Package words reads the arguments of a tool from the words of a command line: KEY=VALUE, or one JSON object.
package words

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Schema is the JSON schema of a tool's arguments.
type Schema struct {
	Properties map[string]Property
	Required   []string

	Names []string // of the properties, in the order of the schema
	Sole  string   // the required argument, if it is the only one
}

// Property is one argument.
type Property struct {
	Type, Description string
	Enum              []string
	AnyOf             []struct{ Type string }
	Minimum, Maximum  *float64
}

// SchemaOf returns the schema of a tool.
func SchemaOf(t tools.Tool) (schema Schema) {
	_ = json.Unmarshal(t.Schema, &schema) // tools.New has written it
	all, _ := hujson.Parse(t.Schema)
	if properties := all.Find("/properties"); properties != nil {
		for _, m := range properties.Value.(*hujson.Object).Members {
			schema.Names = append(schema.Names, m.Name.Value.(hujson.Literal).String())
		}
	}
	if schema.Sole = ""; len(schema.Required) == 1 {
		schema.Sole = schema.Required[0]
	}
	return schema
}

// Help explains a tool: its description, its rules, and its arguments in the order of the schema.
func Help(t tools.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", t.Name, t.Description)
	for _, rule := range t.Rules {
		fmt.Fprintf(&b, "  %s\n", rule)
	}
	fmt.Fprintf(&b, "\nArguments of %s:\n", t.Name)
	schema := SchemaOf(t)
	for _, name := range schema.Names {
		p, mark := schema.Properties[name], ""
		if slices.Contains(schema.Required, name) {
			mark = " (required)"
		}
		fmt.Fprintf(&b, "  %s%s\n        %s%s\n", name, mark, cmp.Or(t.Help[name], p.Description, p.Type), p.values())
	}
	return b.String()
}

// values describes the valid values if they are restricted: " One of a, b." or " From 0 to 20."; else "".
func (p Property) values() string {
	switch {
	case len(p.Enum) > 0:
		return " One of " + strings.Join(p.Enum, ", ") + "."
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf(" From %v to %v.", *p.Minimum, *p.Maximum)
	case p.Minimum != nil:
		return fmt.Sprintf(" At least %v.", *p.Minimum)
	}
	return ""
}

// Parse parses one JSON object, or KEY=VALUE words whose values are read by the type that the tool's schema
// gives them. A word without = is the value of the only required argument.
func Parse(t tools.Tool, words []string) (json.RawMessage, error) {
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		return json.RawMessage(words[0]), nil
	}
	schema := SchemaOf(t)
	args := map[string]json.RawMessage{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			given := func(name string) bool {
				_, bare := args[name]
				return bare ||
					slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, name+"=") })
			}
			var err error
			if key, err = schema.bareWord(t.Name, word, given); err != nil {
				return nil, err
			}
			value = word
		}
		p, known := schema.Properties[key]
		raw := json.RawMessage(value)
		// A value of another type is passed as a string, so that the tool's own error names it.
		list := known && p.Type == "" && len(p.AnyOf) < 3 // one string or several: as a JSON array, or KEY= given several times
		if !known || p.Type == "string" || p.Type == "" && !list || !json.Valid(raw) || list && json.Unmarshal(raw, new([]string)) != nil {
			raw, _ = json.Marshal(value)
		}
		if before, twice := args[key]; twice && !list {
			return nil, fmt.Errorf("%s= is given twice", key)
		} else if twice {
			raw = appendStrings(before, raw)
		}
		args[key] = raw
	}
	return json.Marshal(args)
}

// bareWord returns the argument whose value is a word without =: the only required one, unless it is given
// otherwise. Its error names the argument that was probably meant.
func (s Schema) bareWord(tool, word string, given func(name string) bool) (string, error) {
	if s.Sole != "" && !given(s.Sole) {
		return s.Sole, nil
	}
	meant := func(name string) error { return fmt.Errorf("%.60q is not KEY=VALUE; write %s", word, name) }
	if p, known := s.Properties[word]; known && p.Type == "boolean" {
		return "", meant(word + "=true")
	} else if known {
		return "", meant(word + "=VALUE")
	}
	for _, name := range s.Required {
		if !given(name) {
			return "", meant(fmt.Sprintf("%s=%.60s (%s requires %s)", name, word, tool, strings.Join(s.Required, " and ")))
		}
	}
	if s.Sole != "" {
		return "", fmt.Errorf("%.60q is not KEY=VALUE, and %s= is given already; arguments of %s: %s", word, s.Sole, tool,
			strings.Join(s.Names, ", "))
	}
	if slices.Contains(s.Names, "path") {
		return "", meant(fmt.Sprintf("path=%.60s; arguments of %s: %s", word, tool, strings.Join(s.Names, ", ")))
	}
	return "", meant("one of " + strings.Join(s.Names, "=, ") + "=")
}

// appendStrings returns the strings of both values, each a string or an array of strings, as one array.
func appendStrings(a, b json.RawMessage) json.RawMessage {
	var all, more tools.Strings
	_ = json.Unmarshal(a, &all) // both were checked or written here
	_ = json.Unmarshal(b, &more)
	raw, _ := json.Marshal(append(all, more...))
	return raw
}
