package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is what a client reports through a hook or status line.
type Kind string

// Kinds of events.
const (
	Status       Kind = "status"
	SessionStart Kind = "session_start"
	SessionEnd   Kind = "session_end"
	PreCompact   Kind = "pre_compact"
	PostCompact  Kind = "post_compact"
	ToolUse      Kind = "tool_use"    // a tool is about to be called
	ToolResult   Kind = "tool_result" // a tool was called
	Other        Kind = "other"
)

// kinds maps the names of Claude Code's hooks. Older versions name the status line; newer ones leave the name out.
var kinds = map[string]Kind{
	"": Status, "Status": Status, "SessionStart": SessionStart, "SessionEnd": SessionEnd, "PreCompact": PreCompact,
	"PostCompact": PostCompact, "PreToolUse": ToolUse, "PostToolUse": ToolResult, "PostToolUseFailure": ToolResult,
}

// Event is what a client's hook or status line reports.
type Event struct {
	Kind           Kind
	Session        string
	AgentID        string // the subagent; "" for the main conversation
	ToolUseID      string
	TranscriptPath string
	CWD            string
	Model          string
	Window         int    // the context window; 0: unknown
	Usage          *Usage // nil: unknown, which is not zero
	Reset          bool   // the context was compacted or cleared
}

// Key returns the name of the session that the event is about.
func (e Event) Key() string { return Key(e.Session, e.AgentID) }

// MaxEvent bounds the JSON of one event, in bytes: a hook after a tool call carries the tool's whole output.
const MaxEvent = 16 << 20

// claudeEvent are the fields of Claude Code's JSON that are read.
type claudeEvent struct {
	Name          text        `json:"hook_event_name"`
	Session       text        `json:"session_id"`
	Agent         text        `json:"agent_id"`
	ToolUse       text        `json:"tool_use_id"`
	Transcript    text        `json:"transcript_path"`
	CWD           text        `json:"cwd"`
	Source        text        `json:"source"`
	Model         modelName   `json:"model"`
	ContextTokens *number     `json:"context_tokens"`
	Context       contextSize `json:"context_window"`
}

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
	var c claudeEvent
	if err := json.Unmarshal(b, &c); err != nil {
		return Event{}, fmt.Errorf("usage: standard input is not the JSON of a hook or status line: %w", err)
	}
	return c.event()
}

func (c claudeEvent) event() (Event, error) {
	kind, known := kinds[string(c.Name)]
	if !known {
		kind = Other
	}
	e := Event{
		Kind: kind, Session: string(c.Session), TranscriptPath: string(c.Transcript), CWD: string(c.CWD),
		Model: string(c.Model),
	}
	if !validID(e.Session) {
		return Event{}, fmt.Errorf("usage: session_id must be 1 to %d printable characters", maxID)
	}
	for _, id := range []struct {
		name  string
		value text
		to    *string
	}{{"agent_id", c.Agent, &e.AgentID}, {"tool_use_id", c.ToolUse, &e.ToolUseID}} {
		if id.value != "" && !validID(string(id.value)) {
			return Event{}, fmt.Errorf("usage: %s must be 1 to %d printable characters", id.name, maxID)
		}
		*id.to = string(id.value)
	}
	e.Reset = kind == PostCompact || kind == SessionStart && (c.Source == "compact" || c.Source == "clear")
	return e, c.figures(&e)
}

// figures fills the window and the usage. After a compaction or clear, no figure of before counts.
func (c claudeEvent) figures(e *Event) error {
	var prompt int
	var err error
	source := FromHook
	switch e.Kind {
	case Status:
		source = FromStatusLine
		if c.Context.size != nil {
			if e.Window, err = c.Context.size.tokens(); err != nil {
				return fmt.Errorf("usage: context_window_size %w", err)
			}
		}
		if prompt, err = c.Context.current.prompt(); err != nil {
			return fmt.Errorf("usage: current_usage %w", err)
		}
	case SessionStart:
		if e.Reset || c.ContextTokens == nil {
			return nil
		}
		if prompt, err = c.ContextTokens.tokens(); err != nil {
			return fmt.Errorf("usage: context_tokens %w", err)
		}
	}
	if prompt > 0 { // no prompt is empty: 0 means unknown
		e.Usage = &Usage{
			Session: e.Key(), PromptTokens: prompt, Window: e.Window, Model: id(text(e.Model)), Source: source,
		}
	}
	return nil
}
