package chat

import (
	"encoding/json"
	"strings"
)

// controls are the control tokens of models' templates.
var controls = strings.NewReplacer("<|", "< |", "|>", "| >", "[INST]", "[ INST]", "</s>", "</ s>")

// BreakControls breaks up control tokens, so that the text of a file cannot end a message.
func BreakControls(text string) string { return controls.Replace(text) }

// Message is one message of a conversation.
type Message struct {
	Role       string     `json:"role"` // system, user, assistant or tool
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // of a tool's message: the call it answers
}

// ToolCall is a model's use of a tool.
type ToolCall struct {
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"` // "function"
	Function Function `json:"function"`
}

// Function is the tool and its arguments, a JSON object as text.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is a tool that is offered.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one request. It is self-contained: Messages is the whole conversation.
type Request struct {
	Messages  []Message
	Tools     []Tool
	MaxTokens int  // 0: that of the profile
	Stream    bool // the reply is read as it is written
	// Prefill says that the last message is the beginning of the reply, which the endpoint continues; only if
	// [Client.Prefills].
	Prefill bool
	// Progress is called with the number of bytes of a streamed reply so far; nil: it is not.
	Progress func(bytes int)
}

// Usage is what the endpoint reports of a request; all 0 if it reports nothing.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens"` // of Prompt
}

// Reply is the model's answer.
type Reply struct {
	Text         string
	Reasoning    string // what the model thought aloud, if the endpoint separates it
	ToolCalls    []ToolCall
	FinishReason string // as reported: it decides nothing
	Usage        Usage
	Masked       int // secrets that were masked in the request
}
