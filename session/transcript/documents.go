package transcript

import "strings"

// documentFormat returns the format of one JSON value; "" if it is no transcript.
func documentFormat(n *node) Format {
	items := itemsOf(n)
	if items == nil {
		return ""
	}
	format := Format("")
	for _, m := range items {
		switch {
		case m.kind != '{':
			return ""
		case m.str("role") == "tool" || m.get("tool_calls") != nil:
			return Chat
		case m.get("call_id") != nil:
			return Responses
		}
		for _, block := range m.elements("content") {
			switch block.str("type") {
			case "tool_use", "tool_result":
				return Anthropic
			case "input_text", "output_text":
				format = Responses
			}
		}
		if format == "" && m.get("role") != nil && m.get("content") != nil {
			format = Chat
			if n.get("system") != nil {
				format = Anthropic
			}
		}
	}
	return format
}

// itemsOf returns the messages of a request, or of a list of them.
func itemsOf(n *node) []*node {
	switch {
	case n.kind == '[':
		return n.items
	case n.get("messages") != nil:
		return n.elements("messages")
	}
	return n.elements("input")
}

// document reads the messages or items of one JSON value, which is line 0.
func (t *Transcript) document(n *node) {
	for _, name := range []string{"system", "instructions"} {
		if v := n.get(name); v != nil {
			b := Block{At: v.Start, Role: System, Sent: true}
			t.read(&b, v)
			t.add(b)
		}
	}
	t.Model = n.str("model")
	if v := n.get("tools"); v != nil { // their definitions are a part of the prompt
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
func (t *Transcript) chatMessage(m *node) {
	b := Block{At: m.Start, Role: Role(m.str("role")), Sent: true, message: m.Start}
	if c := m.get("content"); c == nil || c.kind != '0' { // a message with calls may have null
		t.read(&b, c)
	}
	if b.Role == Tool {
		b.ID = m.str("tool_call_id")
	}
	if b.Role == "developer" {
		b.Role = System
	}
	if v := m.get("refusal"); v != nil && v.kind == '"' {
		t.addRest(&b, "", v)
	}
	t.add(b)
	for _, call := range m.elements("tool_calls") {
		t.add(Block{
			At: call.Start, Role: Assistant, Call: true, ID: call.str("id"), Name: call.str("function", "name"),
			Args: t.textOf(0, call.get("function", "arguments")), Sent: true,
		})
	}
}

// item reads an item of the responses API, which rollouts of Codex have too.
func (t *Transcript) item(line int, n *node) {
	if n == nil {
		return
	}
	b := Block{Line: line, At: n.Start, Sent: true, message: n.Start}
	switch kind := n.str("type"); kind {
	case "message", "":
		b.Role = Role(n.str("role"))
		if b.Role == "developer" {
			b.Role = System
		}
		t.read(&b, n.get("content"))
	case "function_call", "custom_tool_call", "local_shell_call":
		b.Role, b.Call, b.ID, b.Name = Assistant, true, n.str("call_id"), n.str("name")
		if b.Args = t.textOf(line, n.get("arguments")); b.Args.Text() == "" {
			b.Args = t.textOf(line, n.get("input"))
		}
		if kind == "local_shell_call" {
			b.Name, b.Args = "shell", t.asWritten(line, n.get("action"))
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		b.Role, b.ID = Tool, n.str("call_id")
		output := n.get("output")
		if output != nil && output.kind == '{' {
			b.Error = output.get("success") != nil && !output.isTrue("success")
			output = output.get("content")
		}
		t.read(&b, output)
		b.Error = b.Error || n.str("status") == "failed" || shellOutput(&b)
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
	code := n.get("metadata", "exit_code")
	if output := n.get("output"); code != nil && output != nil && output.kind == '"' && output.size > 0 {
		b.Inner = &output.Span
	}
	return code != nil && code.text != "0"
}
