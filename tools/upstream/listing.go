package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// tool returns the tool of an entry of tools/list. It is listed as it is, without the schema of its results: a result
// may become a receipt.
func (s *Server) tool(entry json.RawMessage) (tools.Tool, error) {
	var e struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnly    bool  `json:"readOnlyHint"`
			Destructive *bool `json:"destructiveHint"`
			OpenWorld   *bool `json:"openWorldHint"`
		} `json:"annotations"`
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	if err := json.Unmarshal(entry, &e); err != nil {
		return tools.Tool{}, fmt.Errorf("%.64s: its definition cannot be read: %w", nameOf(entry), err)
	}
	e.Name = nameOf(entry) // encoding/json would also accept "Name"
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case e.Name == "":
		return tools.Tool{}, errors.New("it has no name")
	case e.Execution.TaskSupport == "required":
		return tools.Tool{}, fmt.Errorf("%s: %w", e.Name, errTask)
	case json.Unmarshal(e.InputSchema, &schema) != nil || schema.Type != "object":
		return tools.Tool{}, fmt.Errorf("%s: the schema of its arguments is not of type object", e.Name)
	}
	listing := entry
	if !s.options.Observe {
		var err error
		if listing, err = without(entry, "outputSchema"); err == nil {
			e.Description, listing, err = cleaned(e.Description, listing)
		}
		if err != nil {
			return tools.Tool{}, err
		}
	}
	t := tools.Tool{
		Name: e.Name, Title: cmp.Or(e.Title, e.Name), Description: cmp.Or(e.Description, e.Name),
		Schema: e.InputSchema, Listing: listing, Toolset: Toolset, Server: s.options.Name,
		Effect: tools.Destructive, OpenWorld: e.Annotations.OpenWorld == nil || *e.Annotations.OpenWorld,
		Run: s.run(e.Name, e.Annotations.ReadOnly), Check: func(json.RawMessage) error { return nil },
	}
	switch {
	case e.Annotations.ReadOnly:
		t.Effect = tools.ReadOnly
	case e.Annotations.Destructive != nil && !*e.Annotations.Destructive:
		t.Effect = tools.Writes
	}
	return t, nil
}

var errTask = errors.New("it runs only as a task, and tasks are not passed on")

// maxDescription is how many characters of a description are listed.
const maxDescription = 8000

// cleaned makes hidden characters in the titles and descriptions of a listing visible, and truncates long ones. It
// also returns the description. A listing in which nothing changes is returned as it was written.
func cleaned(description string, listing json.RawMessage) (string, json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(listing))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		return "", nil, err
	}
	if !clean(all) {
		return description, listing, nil
	}
	text, err := json.Marshal(all)
	return cleanText(description), text, err
}

func cleanText(s string) string { return content.Clip(content.Visible(s, false), maxDescription) }

// clean cleans the titles and descriptions in a value, and reports whether it changed any.
func clean(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			changed = clean(one) || changed
		}
	case map[string]any:
		for name, one := range v {
			if text, ok := one.(string); ok && (name == "title" || name == "description") && cleanText(text) != text {
				v[name], changed = cleanText(text), true
			}
			changed = clean(one) || changed
		}
	}
	return changed
}

// without returns a JSON object without a member. It leaves the values of the others as they were written.
func without(object json.RawMessage, name string) (json.RawMessage, error) {
	out := []byte{'{'}
	err := jsonrpc.EachMember(object, func(member string, value, _ json.RawMessage) {
		if member == name {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, member) // it was read as a string
		out = append(append(out, ':'), value...)
	})
	return append(out, '}'), err
}

// maxName is how long the name of a tool may be for clients.
const maxName = 64

// clipName cuts a name to at most 64 bytes.
func clipName(name string) string {
	name = name[:min(len(name), maxName)]
	return name[:runes.Complete([]byte(name))]
}

// renamed returns the tool with another name.
func renamed(t tools.Tool, name string) (tools.Tool, error) {
	t.Name = name
	var err error
	t.Listing, err = withMember(t.Listing, "name", name)
	return t, err
}

// withMember returns a JSON object whose first member has this name and text. It leaves the other members as they were
// written.
func withMember(object json.RawMessage, name, text string) (json.RawMessage, error) {
	rest, err := without(object, name)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	out := fmt.Appendf(nil, `{%q:%s`, name, quoted)
	if len(rest) > len("{}") {
		out = append(out, ',')
	}
	return append(out, rest[1:]...), nil
}
