// Package hook reads what Claude Code writes to a PostToolUse hook, finds the texts of a tool's output that a model
// reads, and writes the answer that replaces some of them.
//
// The client silently drops a replacement that has not the shape of the tool's own output. An answer is therefore the
// output as it came, byte for byte, but for the strings that are replaced.
package hook

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// MaxInput bounds the input of a hook, in bytes: it carries the tool's whole output.
const MaxInput = 64 << 20

// replaced are the client's own tools whose outputs may be replaced, with the members of these that hold texts.
var replaced = map[string][]string{"Bash": {"stdout", "stderr"}, "Grep": {"content"}, "WebFetch": {"result"}}

// Replaces reports whether the output of a tool may be replaced: of some of the client's own, and of other servers
// (mcp__SERVER__TOOL). The output of Read may not, because an edit needs the exact text.
func Replaces(tool string) bool { return replaced[tool] != nil || strings.HasPrefix(tool, "mcp__") }

// Call is a tool call that the client made, and its output.
type Call struct {
	usage.Event
	Tool          string // as the client names it
	text          []byte // the input of the hook
	input, output *jsontree.Node
}

// Text is a text of an output.
type Text struct {
	Text string // as the tool wrote it
	File string // where all of it is, if the client has cut it; else ""
	By   string // what replaces it; "" for nothing
	at   jsontree.Span
	list bool            // it is the elements of an array of strings, one a line; so is what replaces it
	drop []jsontree.Span // of the input; removed together with the text
}

var errNoObject = errors.New("not a value that begins with {")

// Parse parses the input of a hook. The rules for names of sessions are those of [usage.ParseClientEvent]. Names that
// stand twice are refused, because readers differ in which of them counts.
func Parse(in []byte) (Call, error) {
	c, _, err := parse(in, "PostToolUse")
	return c, err
}

func parse(in []byte, event string) (c Call, all *jsontree.Node, err error) {
	all, err = jsontree.Parse(bytes.NewBuffer(in))
	if err == nil && all.Kind != '{' {
		err = errNoObject
	}
	if err != nil {
		return Call{}, nil, fmt.Errorf("standard input is not the JSON of a hook: %w", err)
	}
	if name := all.Str("hook_event_name"); name != event {
		return Call{}, nil, fmt.Errorf("the event %.40q is not %s, which this hook answers", name, event)
	}
	c = Call{Tool: all.Str("tool_name"), text: in, input: all.Get("tool_input"), output: all.Get("tool_response")}
	c.Event, err = usage.EventIn(in, all)
	return c, all, err
}

// Texts returns the texts of the output that may be replaced, or an error for an output of unknown shape.
func (c Call) Texts() (texts []Text, err error) {
	names, own := replaced[c.Tool]
	switch out := c.output; {
	case !Replaces(c.Tool) || out == nil:
		return nil, nil
	case !own && out.IsString():
		return []Text{{Text: c.string(out), at: out.Span}}, nil
	case !own && out.Kind == '[':
		for _, block := range out.Items {
			if text := block.Get("text"); text.IsString() && block.Str("type") == "text" {
				texts = append(texts, Text{Text: c.string(text), at: text.Span})
			}
		}
		return texts, nil
	case !own:
		return nil, errors.New("not a value that begins with [")
	case out.Kind != '{':
		return nil, errNoObject
	case out.IsTrue("isImage"): // of Bash
		return nil, nil
	}
	for _, name := range names {
		value := c.output.Get(name)
		if !value.IsString() {
			continue
		}
		t := Text{Text: c.string(value), at: value.Span}
		if name == "stdout" {
			t.File = c.Output("persistedOutputPath")
			t.drop = without(c.output.Members, "persistedOutputPath", "persistedOutputSize")
		}
		texts = append(texts, t)
	}
	if names := c.output.Get("filenames"); c.Tool == "Grep" && len(texts) == 0 { // it lists the files that match
		var list []string
		for _, name := range names.Elements() {
			if !name.IsString() {
				return nil, nil
			}
			list = append(list, c.string(name))
		}
		if len(list) > 0 {
			texts = []Text{{Text: strings.Join(list, "\n"), at: names.Span, list: true}}
		}
	}
	return texts, nil
}

// string returns the text of a string; "" for anything else. Half of a surrogate pair, where the client cut a string,
// becomes U+FFFD.
func (c Call) string(n *jsontree.Node) string {
	if !n.IsString() {
		return ""
	}
	return string(content.AppendUnquoted(nil, c.text[n.Start+1:n.End-1]))
}

// Arguments returns the arguments as JSON; nil if there are none.
func (c Call) Arguments() []byte {
	if c.input == nil {
		return nil
	}
	return c.text[c.input.Start:c.input.End]
}

// Argument returns a string among the arguments; "" if there is none.
func (c Call) Argument(name string) string { return c.string(c.input.Get(name)) }

// Output returns a string of the output at a path of names; "" if there is none.
func (c Call) Output(names ...string) string { return c.string(c.output.Get(names...)) }

// Answer returns what the hook writes to standard output: the output with its texts replaced; nil if none is.
func (c Call) Answer(texts []Text) []byte {
	edits := map[jsontree.Span][]byte{}
	var order []jsontree.Span
	for _, t := range texts {
		if t.By != "" {
			edits[t.at], _ = content.PlainJSON(t.By) // a string never fails
			if t.list {
				edits[t.at] = slices.Concat([]byte("["), edits[t.at], []byte("]"))
			}
			order = append(append(order, t.at), t.drop...)
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.SortFunc(order, func(a, b jsontree.Span) int { return a.Start - b.Start })
	out, at := []byte(`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`), c.output.Start
	for _, s := range order {
		out = append(append(out, c.text[at:s.Start]...), edits[s]...) // nothing for what is dropped
		at = s.End
	}
	return append(append(out, c.text[at:c.output.End]...), "}}\n"...)
}

// without returns the spans to remove so that an object lacks the named members. At least one member must stay.
func without(all []jsontree.Member, names ...string) (drop []jsontree.Span) {
	named := func(m jsontree.Member) bool { return slices.Contains(names, m.Name) }
	first := slices.IndexFunc(all, func(m jsontree.Member) bool { return !named(m) })
	for i, m := range all {
		if i < first {
			drop = append(drop, jsontree.Span{Start: m.Begin, End: all[i+1].Begin})
		} else if named(m) {
			drop = append(drop, jsontree.Span{Start: all[i-1].Value.End, End: m.Value.End})
		}
	}
	return drop
}
