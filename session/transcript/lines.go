package transcript

import (
	"cmp"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
)

// lineFormat returns the format of JSON lines by one line; "" if it does not tell.
func lineFormat(n *jsontree.Node) Format {
	switch kind := n.Str("type"); {
	case n.Get("payload") != nil && n.Get("timestamp") != nil:
		return Codex
	case (kind == "user" || kind == "assistant") && n.Get("message") != nil,
		kind == "system" && n.Get("subtype") != nil,
		kind == "summary" && n.Get("leafUuid") != nil,
		kind == "file-history-snapshot", kind == "queue-operation", kind == "attachment":
		return Claude
	}
	return ""
}

// longCopy is the length from which a string beside a result is taken for a repetition of it, in bytes.
const longCopy = 200

// claude reads one line of a session file of Claude Code: one content block of a message, or a record beside it.
func (t *Transcript) claude(line int, n *jsontree.Node) bool {
	if id := n.Str("sessionId"); id != "" {
		t.Session = id
	}
	sent := !n.IsTrue("isSidechain")
	if id := n.Str("uuid"); id != "" {
		if _, again := t.lineOf[id]; again { // the client keeps one message for each id
			t.Again++
			t.message(line, n, n.Get("message"), false)
			return true
		}
		t.lineOf[id] = line
	}
	switch n.Str("type") {
	case "user", "assistant":
		t.message(line, n, n.Get("message"), sent)
	case "system":
		switch n.Str("subtype") {
		case "compact_boundary":
			if sent {
				t.boundary, t.RequestSize = len(t.Blocks), RequestSize{Model: t.Model}
				t.preserve(n.Get("compactMetadata"))
			}
		case "microcompact_boundary":
			for _, id := range n.Elements("microcompactMetadata", "compactedToolIds") {
				t.cleared[id.Text] = clearing{at: len(t.Blocks)}
			}
		}
	case "content-replacement":
		for _, r := range n.Elements("replacements") {
			if id := r.Str("toolUseId"); id != "" {
				t.cleared[id] = clearing{by: t.textOf(line, r.Get("replacement")), at: len(t.Blocks)}
			}
		}
	case "attachment": // the client adds it to a message, in words of its own
		b := Block{Line: line, At: n.Start, Role: System, Sent: sent, Other: true}
		t.addRest(&b, "", n.Get("attachment"))
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
func (t *Transcript) preserve(meta *jsontree.Node) {
	t.preserved = map[int]bool{}
	head, found := t.lineOf[meta.Str("preservedSegment", "headUuid")]
	tail, ends := t.lineOf[meta.Str("preservedSegment", "tailUuid")]
	for line := head; found && ends && line <= tail; line++ {
		t.preserved[line] = true // results of parallel calls are off the chain, but stand between its ends
	}
	for _, id := range meta.Elements("preservedMessages", "uuids") {
		if line, ok := t.lineOf[id.Text]; ok {
			t.preserved[line] = true
		}
	}
}

// message reads a message of the Anthropic API. outer is the line or value around it, which may repeat results.
func (t *Transcript) message(line int, outer, m *jsontree.Node, sent bool) {
	if m == nil {
		return
	}
	if sent {
		t.report(line, m)
	}
	b := Block{Line: line, At: m.Start, Role: Role(m.Str("role")), Sent: sent, message: m.Start}
	content := m.Get("content")
	if content == nil || content.Kind != '[' {
		t.read(&b, content)
		t.add(b)
		return
	}
	for _, block := range content.Items {
		b := b // each block of a message has its role
		b.At = block.Start
		t.part(&b, block)
		if kind := block.Str("type"); kind == "tool_result" {
			for _, copied := range outer.Get("toolUseResult").Strings() {
				if copied.Size >= longCopy {
					b.Copies = append(b.Copies, t.literal(line, copied))
				}
			}
		}
		t.add(b)
	}
}

// part reads a content block. Calls and results of tools that run at the API are counted like others, and never
// replaced: the API checks them.
func (t *Transcript) part(b *Block, n *jsontree.Node) {
	switch kind := n.Str("type"); {
	case kind == "tool_use", strings.HasSuffix(kind, "_tool_use"):
		b.ID = n.Str("id")
		t.call(b, n)
		if server := n.Str("server_name"); server != "" {
			b.Name = "mcp__" + server + "__" + b.Name // as clients name the tools of their own servers
		}
	case kind == "tool_result":
		b.Role, b.ID, b.Error = Tool, n.Str("tool_use_id"), n.IsTrue("is_error")
		t.read(b, n.Get("content"))
	case strings.HasSuffix(kind, "_tool_result"):
		b.Role, b.ID, b.Error = Tool, n.Str("tool_use_id"), n.IsTrue("is_error")
		t.other(b, n)
	case kind == "text" && n.Str("text") != "":
		b.Texts = []Literal{t.literal(b.Line, n.Get("text"))}
	case kind != "text": // thinking and its signature, documents, images: never touched
		t.other(b, n)
	}
}

// report remembers what an answer says of its request. A client writes an answer in several lines: the prompt is what
// stood before the first of them.
func (t *Transcript) report(line int, m *jsontree.Node) {
	u, _ := usage.OfMessage(m) // figures out of range are unknown
	t.Model = cmp.Or(u.Model, t.Model)
	if u.PromptTokens == 0 {
		return
	}
	if u.Turn == "" || u.Turn != t.RequestSize.message {
		t.Reported, t.ReportLine, t.Output = len(t.Blocks), line, 0
	}
	output := usage.Tokens(m.Get("usage", "output_tokens"))
	t.Usage, t.Output, t.RequestSize.message = u.PromptTokens, max(t.Output, output), u.Turn
}

// codex reads one line of a rollout of Codex.
func (t *Transcript) codex(line int, n *jsontree.Node) bool {
	payload := n.Get("payload")
	switch n.Str("type") {
	case "session_meta":
		if t.Session == "" {
			t.Session = payload.Str("id")
		}
	case "response_item":
		t.item(line, payload)
	case "compacted":
		t.boundary, t.RequestSize = len(t.Blocks), RequestSize{Model: t.Model}
		if history := payload.Elements("replacement_history"); history != nil { // the message is in it
			for _, item := range history {
				t.item(line, item)
			}
		} else if v := payload.Get("message"); v != nil && v.Kind == '"' {
			t.add(Block{Line: line, Role: User, Texts: []Literal{t.literal(line, v)}, Sent: true})
		}
	case "event_msg":
		t.reportCodex(line, payload)
	case "turn_context":
		if model := payload.Str("model"); model != "" {
			t.Model = model
		}
	default:
		return false
	}
	return true
}

// reportCodex remembers the usage of a request, which Codex records behind the items of its answer.
func (t *Transcript) reportCodex(line int, payload *jsontree.Node) {
	u, _ := usage.OfTokenCount(payload) // figures out of range are unknown
	if u.PromptTokens == 0 {
		return
	}
	t.Usage, t.Output, t.Reported, t.ReportLine = u.PromptTokens, 0, len(t.Blocks), line
	last := payload.Get("info", "last_token_usage")
	if usage.Tokens(last.Get("input_tokens")) == 0 { // after a compaction it is an estimate of all blocks
		return
	}
	t.Output = usage.Tokens(last.Get("output_tokens"))
	for t.Reported > t.boundary && t.Blocks[t.Reported-1].Role == Assistant {
		t.Reported--
	}
}
