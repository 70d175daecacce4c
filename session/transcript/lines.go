package transcript

import (
	"strconv"
	"strings"
)

// lineFormat returns the format of JSON lines by one line; "" if it does not tell.
func lineFormat(n *node) Format {
	switch kind := n.str("type"); {
	case n.get("payload") != nil && n.get("timestamp") != nil:
		return Codex
	case (kind == "user" || kind == "assistant") && n.get("message") != nil,
		kind == "system" && n.get("subtype") != nil,
		kind == "summary" && n.get("leafUuid") != nil,
		kind == "file-history-snapshot", kind == "queue-operation", kind == "attachment":
		return Claude
	}
	return ""
}

// longCopy is the length from which a string beside a result is taken for a repetition of it, in bytes.
const longCopy = 200

// claude reads one line of a session file of Claude Code: one content block of a message, or a record beside it.
func (t *Transcript) claude(line int, n *node) bool {
	if id := n.str("sessionId"); id != "" {
		t.Session = id
	}
	sent := !n.isTrue("isSidechain")
	if id := n.str("uuid"); id != "" {
		if _, again := t.lineOf[id]; again { // the client keeps one message for each id
			t.Again++
			t.message(line, n, n.get("message"), false)
			return true
		}
		t.lineOf[id] = line
	}
	switch n.str("type") {
	case "user", "assistant":
		t.message(line, n, n.get("message"), sent)
	case "system":
		switch n.str("subtype") {
		case "compact_boundary":
			if sent {
				t.boundary, t.RequestSize = len(t.Blocks), RequestSize{Model: t.Model}
				t.preserve(n.get("compactMetadata"))
			}
		case "microcompact_boundary":
			for _, id := range n.elements("microcompactMetadata", "compactedToolIds") {
				t.cleared[id.text] = clearing{at: len(t.Blocks)}
			}
		}
	case "content-replacement":
		for _, r := range n.elements("replacements") {
			if id := r.str("toolUseId"); id != "" {
				t.cleared[id] = clearing{by: t.textOf(line, r.get("replacement")), at: len(t.Blocks)}
			}
		}
	case "attachment": // the client adds it to a message, in words of its own
		b := Block{Line: line, At: n.Start, Role: System, Sent: sent, Other: true}
		t.addRest(&b, "", n.get("attachment"))
		b.Unknown = "attachment"
		t.add(b)
	case "summary", "queue-operation", "progress", snapshot, "custom-title", "ai-title", "last-prompt":
	default:
		return false
	}
	return true
}

// preserve marks the lines before a compaction that the client still sends: a segment, or single messages. The client
// does not write them again behind the boundary.
func (t *Transcript) preserve(meta *node) {
	t.preserved = map[int]bool{}
	head, found := t.lineOf[meta.str("preservedSegment", "headUuid")]
	tail, ends := t.lineOf[meta.str("preservedSegment", "tailUuid")]
	for line := head; found && ends && line <= tail; line++ {
		t.preserved[line] = true // results of parallel calls are off the chain, but stand between its ends
	}
	for _, id := range meta.elements("preservedMessages", "uuids") {
		if line, ok := t.lineOf[id.text]; ok {
			t.preserved[line] = true
		}
	}
}

// message reads a message of the Anthropic API. outer is the line or value around it, which may repeat results.
func (t *Transcript) message(line int, outer, m *node, sent bool) {
	if m == nil {
		return
	}
	if sent && m.str("model") != "<synthetic>" {
		t.report(line, m)
	}
	b := Block{Line: line, At: m.Start, Role: Role(m.str("role")), Sent: sent, message: m.Start}
	content := m.get("content")
	if content == nil || content.kind != '[' {
		t.read(&b, content)
		t.add(b)
		return
	}
	for _, block := range content.items {
		b := b // each block of a message has its role
		b.At = block.Start
		t.part(&b, block)
		if kind := block.str("type"); kind == "tool_result" {
			for _, copied := range outer.get("toolUseResult").stringsIn() {
				if copied.size >= longCopy {
					b.Copies = append(b.Copies, t.literal(line, copied))
				}
			}
		}
		t.add(b)
	}
}

// part reads a content block. Calls and results of tools that run at the API are counted like others, and never
// replaced: the API checks them.
func (t *Transcript) part(b *Block, n *node) {
	switch kind := n.str("type"); {
	case kind == "tool_use", strings.HasSuffix(kind, "_tool_use"):
		b.Call, b.ID, b.Name, b.Args = true, n.str("id"), n.str("name"), t.asWritten(b.Line, n.get("input"))
		if server := n.str("server_name"); server != "" {
			b.Name = "mcp__" + server + "__" + b.Name // as clients name the tools of their own servers
		}
	case kind == "tool_result":
		b.Role, b.ID, b.Error = Tool, n.str("tool_use_id"), n.isTrue("is_error")
		t.read(b, n.get("content"))
	case strings.HasSuffix(kind, "_tool_result"):
		b.Role, b.ID, b.Error = Tool, n.str("tool_use_id"), n.isTrue("is_error")
		t.other(b, n)
	case kind == "text" && n.str("text") != "":
		b.Texts = []Literal{t.literal(b.Line, n.get("text"))}
	case kind != "text": // thinking and its signature, documents, images: never touched
		t.other(b, n)
	}
}

// report remembers what an answer says of its request. A client writes an answer in several lines: the prompt is what
// stood before the first of them.
func (t *Transcript) report(line int, m *node) {
	if model := m.str("model"); model != "" {
		t.Model = model
	}
	usage, id := m.get("usage"), m.str("id")
	n := usageOf(usage)
	if n <= 0 {
		return
	}
	if id == "" || id != t.RequestSize.message {
		t.Reported, t.ReportLine, t.Output = len(t.Blocks), line, 0
	}
	t.Usage, t.Output, t.RequestSize.message = n, max(t.Output, number(usage.get("output_tokens"))), id
}

// usageOf returns the size of the prompt by the usage of a message. With tools that run at the API its figures are sums
// over several requests: the last of them is the prompt.
func usageOf(u *node) (sum int) {
	steps := u.elements("iterations")
	for i := len(steps) - 1; i >= 0; i-- {
		switch steps[i].str("type") {
		case "", "message", "fallback_message":
			if steps[i].get("input_tokens") != nil {
				return usageOf(steps[i])
			}
		}
	}
	for _, name := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		sum += number(u.get(name))
	}
	return sum
}

// number returns a whole number below a billion; 0 for anything else.
func number(n *node) int {
	if n == nil || n.kind != '0' || len(n.text) > 9 {
		return 0
	}
	value, _ := strconv.ParseUint(n.text, 10, 64) // 0 for a text that has anything but digits
	return int(value)
}

// codex reads one line of a rollout of Codex.
func (t *Transcript) codex(line int, n *node) bool {
	payload := n.get("payload")
	switch n.str("type") {
	case "session_meta":
		if t.Session == "" {
			t.Session = payload.str("id")
		}
	case "response_item":
		t.item(line, payload)
	case "compacted":
		t.boundary, t.RequestSize = len(t.Blocks), RequestSize{Model: t.Model}
		if history := payload.elements("replacement_history"); history != nil { // the message is in it
			for _, item := range history {
				t.item(line, item)
			}
		} else if v := payload.get("message"); v != nil && v.kind == '"' {
			t.add(Block{Line: line, Role: User, Texts: []Literal{t.literal(line, v)}, Sent: true})
		}
	case "event_msg":
		if payload.str("type") == "token_count" {
			t.reportCodex(line, payload.get("info", "last_token_usage"))
		}
	case "turn_context":
		if model := payload.str("model"); model != "" {
			t.Model = model
		}
	default:
		return false
	}
	return true
}

// reportCodex remembers the usage of a request, which Codex records behind the items of its answer.
func (t *Transcript) reportCodex(line int, usage *node) {
	n, all := number(usage.get("input_tokens")), number(usage.get("total_tokens"))
	if n+all == 0 {
		return
	}
	t.Usage, t.Output = n, number(usage.get("output_tokens"))
	t.Reported, t.ReportLine = len(t.Blocks), line
	if n == 0 { // after a compaction Codex writes its estimate of all blocks
		t.Usage, t.Output = all, 0
		return
	}
	for t.Reported > t.boundary && t.Blocks[t.Reported-1].Role == Assistant {
		t.Reported--
	}
}
