package usage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
)

// Kind is what a client reports through a hook or status line.
type Kind string

// Kinds of events.
const (
	Status  Kind = "status"
	ToolUse Kind = "tool_use" // a tool is about to be called
	Other   Kind = "other"
)

// events maps names of Claude Code. Older versions name the status line; newer ones leave the name out.
var events = map[string]Kind{"": Status, "Status": Status, "PreToolUse": ToolUse}

// Event is what a client's hook or status line reports.
type Event struct {
	Kind      Kind
	Session   string
	AgentID   string // the subagent; "" for the main conversation
	ToolUseID string
	CWD       string
	Window    int    // the context window; 0: unknown
	Usage     *Usage // nil: unknown, which is not zero
	Reset     bool   // the context was compacted or cleared
}

// Key returns the name of the session that the event is about.
func (e Event) Key() string { return Key(e.Session, e.AgentID) }

// MaxEvent bounds the JSON of one event, in bytes: a hook after a tool call carries the tool's whole output.
const MaxEvent = 16 << 20

// ParseClientEvent parses what a client's hook or status line writes to standard input. It reads at most MaxEvent
// bytes. Unknown fields and events are no error, but figures out of range are.
func ParseClientEvent(r io.Reader) (Event, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxEvent+1))
	if err != nil {
		return Event{}, fmt.Errorf("usage: read standard input: %w", err)
	}
	if len(b) > MaxEvent {
		return Event{}, fmt.Errorf("usage: standard input has over %d MiB; set a matcher for this hook", MaxEvent>>20)
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' {
		return Event{}, errors.New("usage: standard input is not the JSON object of a hook or status line")
	}
	n, err := parse(b)
	if err != nil {
		return Event{}, fmt.Errorf("usage: standard input is not the JSON of a hook or status line: %w", err)
	}
	return EventIn(b, n)
}

// EventIn returns the event in a JSON object of Claude Code and the text that it was parsed from.
func EventIn(text []byte, n *jsontree.Node) (Event, error) {
	name, source := n.Str("hook_event_name"), n.Str("source")
	e := Event{Kind: cmp.Or(events[name], Other)}
	if cwd := n.Get("cwd"); cwd.IsString() {
		e.CWD = jsontree.Unquote(text[cwd.Start:cwd.End])
	}
	if e.Session = nameIn(n, "session_id"); e.Session == "" {
		return Event{}, fmt.Errorf("usage: session_id must be 1 to %d printable characters", maxID)
	}
	e.AgentID, e.ToolUseID = nameIn(n, "agent_id"), nameIn(n, "tool_use_id")
	switch {
	case e.AgentID != n.Str("agent_id"):
		return Event{}, fmt.Errorf("usage: agent_id must be 1 to %d printable characters", maxID)
	case e.ToolUseID != n.Str("tool_use_id"):
		return Event{}, fmt.Errorf("usage: tool_use_id must be 1 to %d printable characters", maxID)
	}
	start := name == "SessionStart"
	e.Reset = name == "PostCompact" || start && (source == "compact" || source == "clear")
	return e, e.figures(text, n, start && !e.Reset)
}

// figures fills the window and the usage of a status line, or of a session that starts or resumes: after a compaction
// or clear, no figure of before counts. The figure total_input_tokens of a status line is not read: in many versions it
// is the sum over all requests of the session.
func (e *Event) figures(text []byte, n *jsontree.Node, start bool) (err error) {
	u := Usage{Session: e.Key(), Source: FromHook}
	switch {
	case e.Kind == Status:
		u.Source = FromStatusLine
		if e.Window, err = tokens(text, n.Get("context_window", "context_window_size")); err != nil {
			return fmt.Errorf("usage: context_window_size %w", err)
		}
		if u.PromptTokens, err = promptIn(text, n.Get("context_window", "current_usage")); err != nil {
			return fmt.Errorf("usage: current_usage %w", err)
		}
	case start:
		if u.PromptTokens, err = tokens(text, n.Get("context_tokens")); err != nil {
			return fmt.Errorf("usage: context_tokens %w", err)
		}
	}
	u.Window = e.Window
	if u.Model = nameIn(n, "model", "id"); u.Model == "" { // of a status line, else of a hook
		u.Model = nameIn(n, "model")
	}
	if u.PromptTokens > 0 { // no prompt is empty: 0 means unknown
		e.Usage = &u
	}
	return nil
}
