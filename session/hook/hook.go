// Package hook reads what Claude Code writes to a PostToolUse hook, finds the texts of a tool's output that a model
// reads, and writes the answer that replaces some of them.
//
// The client silently drops a replacement that has not the shape of the tool's own output. An answer is therefore the
// output as it came, byte for byte, but for the strings that are replaced.
package hook

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
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
	Input, output []byte // JSON; nil: none
}

// Text is a text of an output.
type Text struct {
	Text string // as the tool wrote it
	File string // where all of it is, if the client has cut it; else ""
	By   string // what replaces it; "" for nothing
	at   span
	list bool   // it is the elements of an array of strings, one a line; so is what replaces it
	drop []span // of the output; removed together with the text
}

// Parse parses the input of a hook. The rules for names of sessions are those of [usage.ParseClientEvent], which gets
// neither the arguments nor the output.
func Parse(in []byte) (c Call, err error) {
	all, err := children(in, '{')
	if err != nil {
		return Call{}, fmt.Errorf("standard input is not the JSON of a hook: %w", err)
	}
	var members [][]byte
	for _, m := range all {
		switch value := in[m.from:m.end]; m.name {
		case "tool_name":
			c.Tool = text(value)
		case "tool_input":
			c.Input = value
		case "tool_response":
			c.output = value
		default:
			members = append(members, in[m.begin:m.end])
		}
	}
	rest := fmt.Appendf(nil, "{%s}", bytes.Join(members, []byte(",")))
	if event := text(find(rest, "hook_event_name")); event != "PostToolUse" {
		return Call{}, fmt.Errorf("the event %.40q is not PostToolUse: no other replaces an output", event)
	}
	c.Event, err = usage.ParseClientEvent(bytes.NewReader(rest))
	return c, err
}

// Texts returns the texts of the output that may be replaced, or an error for an output of unknown shape.
func (c Call) Texts() (texts []Text, err error) {
	names, own := replaced[c.Tool]
	switch {
	case !Replaces(c.Tool) || len(c.output) == 0:
		return nil, nil
	case !own && c.output[0] == '"':
		return []Text{{Text: text(c.output), at: span{0, len(c.output)}}}, nil
	case !own:
		return c.blocks()
	}
	all, err := children(c.output, '{')
	image := string(find(c.output, "isImage")) == "true" // of Bash
	for _, m := range all {
		value := c.output[m.from:m.end]
		if !slices.Contains(names, m.name) || value[0] != '"' || image {
			continue
		}
		t := Text{Text: text(value), at: m.span}
		if m.name == "stdout" {
			t.File = text(find(c.output, "persistedOutputPath"))
			t.drop = without(all, "persistedOutputPath", "persistedOutputSize")
		}
		texts = append(texts, t)
	}
	if c.Tool == "Grep" && len(texts) == 0 { // it lists the files that match
		for _, m := range all {
			if names, ok := elements(c.output[m.from:m.end]); ok && m.name == "filenames" {
				texts = append(texts, Text{Text: strings.Join(names, "\n"), at: m.span, list: true})
			}
		}
	}
	return texts, err
}

// elements returns the strings of an array; ok is false for another value and for an empty array.
func elements(raw []byte) (list []string, ok bool) {
	all, err := children(raw, '[')
	for _, e := range all {
		if raw[e.from] != '"' {
			return nil, false
		}
		list = append(list, text(raw[e.from:e.end]))
	}
	return list, err == nil && len(list) > 0
}

// blocks returns the texts of an output that is an array of blocks of MCP.
func (c Call) blocks() (texts []Text, err error) {
	all, err := children(c.output, '[')
	for _, b := range all {
		block := c.output[b.from:b.end]
		members, _ := children(block, '{')
		for _, m := range members {
			if s := block[m.from:m.end]; m.name == "text" && s[0] == '"' && text(find(block, "type")) == "text" {
				texts = append(texts, Text{Text: text(s), at: span{b.from + m.from, b.from + m.end}})
			}
		}
	}
	return texts, err
}

// Output returns a string of the output at a path of names; "" if there is none.
func (c Call) Output(names ...string) string { return text(find(c.output, names...)) }

// Argument returns a string among the arguments; "" if there is none.
func (c Call) Argument(name string) string { return text(find(c.Input, name)) }

// Answer returns what the hook writes to standard output: the output with its texts replaced; nil if none is.
func (c Call) Answer(texts []Text) []byte {
	edits := map[span][]byte{}
	var order []span
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
	slices.SortFunc(order, func(a, b span) int { return a.from - b.from })
	out, at := []byte(`{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":`), 0
	for _, s := range order {
		out = append(append(out, c.output[at:s.from]...), edits[s]...) // nothing for what is dropped
		at = s.end
	}
	return append(append(out, c.output[at:]...), "}}\n"...)
}

// span is a part of a JSON text.
type span struct{ from, end int }

// child is a member of an object or an element of an array.
type child struct {
	span
	name  string
	begin int // where a member begins, with its name
}

// children returns the children of a value that must be an object ('{') or an array ('['). Names that stand twice are
// refused, because readers differ in which of them counts.
func children(raw []byte, open jsontext.Kind) (all []child, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != open {
		return nil, fmt.Errorf("not a value that begins with %c", open)
	}
	for d.PeekKind() != open+2 { // ']' and '}' are two characters after '[' and '{'
		var c child
		if open == '{' {
			name, _ := d.ReadValue() // the next call returns its error
			c.name, c.begin = text(name), int(d.InputOffset())-len(name)
		}
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		c.end = int(d.InputOffset())
		c.from = c.end - len(v)
		all = append(all, c)
	}
	_, _ = d.ReadToken() // the end was seen
	if rest := bytes.TrimSpace(raw[d.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("text follows the value: %.20q", rest)
	}
	return all, nil
}

// find returns the value at a path of names; nil if there is none.
func find(raw []byte, names ...string) []byte {
	for _, name := range names {
		all, _ := children(raw, '{')
		i := slices.IndexFunc(all, func(c child) bool { return c.name == name })
		if i < 0 {
			return nil
		}
		raw = raw[all[i].from:all[i].end]
	}
	return raw
}

// text returns the text of a string; "" for anything else. Half of a surrogate pair, where the client cut a string,
// becomes U+FFFD.
func text(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return string(content.AppendUnquoted(nil, raw[1:len(raw)-1]))
}

// without returns the spans to remove so that an object lacks the named members. At least one member must stay.
func without(all []child, names ...string) (drop []span) {
	named := func(c child) bool { return slices.Contains(names, c.name) }
	first := slices.IndexFunc(all, func(c child) bool { return !named(c) })
	for i, c := range all {
		if i < first {
			drop = append(drop, span{c.begin, all[i+1].begin})
		} else if named(c) {
			drop = append(drop, span{all[i-1].end, c.end})
		}
	}
	return drop
}
