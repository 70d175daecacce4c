package transcript

import (
	"cmp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
)

// documentFormat returns the format of one JSON value; "" if it is no transcript.
func documentFormat(n *jsontree.Node) Format {
	items := itemsOf(n)
	if items == nil {
		return ""
	}
	format := Format("")
	for _, m := range items {
		switch {
		case m.Kind != '{':
			return ""
		case m.Str("role") == "tool" || m.Get("tool_calls") != nil:
			return Chat
		case m.Get("call_id") != nil:
			return Responses
		}
		for _, block := range m.Elements("content") {
			switch block.Str("type") {
			case "tool_use", "tool_result":
				return Anthropic
			case "input_text", "output_text":
				format = Responses
			}
		}
		if format == "" && m.Get("role") != nil && m.Get("content") != nil {
			format = Chat
			if n.Get("system") != nil {
				format = Anthropic
			}
		}
	}
	return format
}

// itemsOf returns the messages of a request, or of a list of them.
func itemsOf(n *jsontree.Node) []*jsontree.Node {
	switch {
	case n.Kind == '[':
		return n.Items
	case n.Get("messages") != nil:
		return n.Elements("messages")
	}
	return n.Elements("input")
}

// document reads the messages or items of one JSON value, which is line 0.
func (t *Transcript) document(n *jsontree.Node) {
	for _, name := range []string{"system", "instructions"} {
		if v := n.Get(name); v != nil {
			b := Block{At: v.Start, Role: System, Sent: true}
			t.read(&b, v)
			t.add(b)
		}
	}
	t.Model = n.Str("model")
	if v := n.Get("tools"); v != nil { // their definitions are a part of the prompt
		t.add(Block{At: v.Start, Role: System, Rest: Rest{More: []Literal{t.asWritten(0, v)}}, Other: true, Sent: true})
	}
	for _, m := range itemsOf(n) {
		switch t.Format {
		case Anthropic:
			t.message(0, nil, m, true)
		case Responses:
			t.item(0, m)
		default:
			t.chatMessage(m)
		}
	}
}

// chatMessage reads a message of chat completions.
func (t *Transcript) chatMessage(m *jsontree.Node) {
	b := Block{At: m.Start, Role: Role(m.Str("role")), Sent: true, message: m.Start}
	if c := m.Get("content"); !c.IsNull() { // a message with calls may have null
		t.read(&b, c)
	}
	if b.Role == Tool {
		b.ID = m.Str("tool_call_id")
	}
	if b.Role == "developer" {
		b.Role = System
	}
	if v := m.Get("refusal"); v != nil && v.Kind == '"' {
		t.addRest(&b, "", v)
	}
	t.add(b)
	for _, call := range m.Elements("tool_calls") {
		b := Block{At: call.Start, ID: call.Str("id"), Sent: true}
		t.call(&b, call.Get("function"))
		t.add(b)
	}
}

// call reads the name and the arguments of a call, which APIs write as a text or as a value.
func (t *Transcript) call(b *Block, n *jsontree.Node) {
	b.Role, b.Call, b.Name = Assistant, true, n.Str("name")
	args := cmp.Or(n.Get("arguments"), n.Get("input"), n.Get("action"))
	if b.Args = t.textOf(b.Line, args); !args.IsString() {
		b.Args = t.asWritten(b.Line, args)
	}
}

// item reads an item of the responses API, which rollouts of Codex have too.
func (t *Transcript) item(line int, n *jsontree.Node) {
	if n == nil {
		return
	}
	b := Block{Line: line, At: n.Start, Sent: true, message: n.Start}
	switch kind := n.Str("type"); kind {
	case "message", "":
		b.Role = Role(n.Str("role"))
		if b.Role == "developer" {
			b.Role = System
		}
		t.read(&b, n.Get("content"))
	case "function_call", "custom_tool_call", "local_shell_call":
		b.ID = n.Str("call_id")
		t.call(&b, n)
		if kind == "local_shell_call" {
			b.Name = "shell"
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		b.Role, b.ID = Tool, n.Str("call_id")
		output := n.Get("output")
		if output != nil && output.Kind == '{' {
			b.Error = output.Get("success") != nil && !output.IsTrue("success")
			output = output.Get("content")
		}
		t.read(&b, output)
		b.Error = b.Error || n.Str("status") == "failed" || shellOutput(&b)
	case "ghost_snapshot": // of Codex's undo: it is not sent
		return
	default: // reasoning and its encrypted content, calls of the API's own tools: never touched
		b.Role = Assistant
		t.other(&b, n)
	}
	t.add(b)
}

// shellOutput finds the output in the JSON that Codex puts around that of its shell, and reports whether the command
// failed.
func shellOutput(b *Block) (failed bool) {
	if len(b.Texts) != 1 {
		return false
	}
	n, err := parse(strings.NewReader(b.Texts[0].Text()))
	if err != nil {
		return false
	}
	code := n.Get("metadata", "exit_code")
	if output := n.Get("output"); code != nil && output.IsString() && output.Size > 0 {
		b.Inner = &output.Span
	}
	return code != nil && code.Text != "0"
}
