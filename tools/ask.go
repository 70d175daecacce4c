package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Asker puts a question to the client that made the call, and waits for its reply.
//
// A client of the stateless era answers by making the call again: then the error is [ErrAsked], nothing
// the run has written is kept, and the tool runs once more from its start, where the same question is
// answered at once. So a tool asks before it changes anything, always the same in the same order, one
// question at a time, and hands the error on.
//
// Other errors: [*CapabilityError] where the client cannot be asked such a thing, [ErrNoReply] where none
// of use came in time, the context's.
type Asker func(ctx context.Context, q Question) (Reply, error)

// Question is exactly one of its fields.
type Question struct {
	Form   *Form
	Prompt *Prompt
}

// Form is for the user, who fills it in or does not (elicitation). It must not ask for secrets.
type Form struct {
	Message string
	Schema  json.RawMessage // a flat object: its properties are strings, numbers, booleans or enumerations
}

// Prompt is for the client's model (sampling).
type Prompt struct {
	System    string
	Messages  []Message
	MaxTokens int // of the reply
}

// Message is one turn of a prompt.
type Message struct {
	Role string // user or assistant
	Text string
}

// Reply is the answer to a question.
type Reply struct {
	Action  Action          // to a form
	Content json.RawMessage // of an accepted form: an object as its schema wants it

	Text  string // to a prompt; what is not text is left out
	Model string // that gave it
	Stop  string // why it ended there: "endTurn", "maxTokens"; "" where the client does not say
}

// Action is what the user did with a form.
type Action string

// The actions.
const (
	Accepted Action = "accept"
	Declined Action = "decline" // said no
	Closed   Action = "cancel"  // said nothing
)

// Errors of an [Asker].
var (
	ErrAsked   = errors.New("the client is being asked; its answer comes with a repetition of this call")
	ErrNoReply = errors.New("the client gave no reply")
)

// CapabilityError says what a client lacks in order to be asked.
type CapabilityError struct {
	Capability string // as MCP names it: "elicitation", "sampling"; "" where there is no client
}

func (e *CapabilityError) Error() string {
	if e.Capability == "" {
		return "there is no client to ask: this tool needs one"
	}
	return fmt.Sprintf("this client cannot be asked: it does not declare the capability %q", e.Capability)
}

// NoClient is the [Asker] where there is nobody to ask: on the command line.
func NoClient(context.Context, Question) (Reply, error) { return Reply{}, &CapabilityError{} }

// Check says what is wrong with a question; nil where it can be asked.
func (q Question) Check() error {
	switch {
	case (q.Form == nil) == (q.Prompt == nil):
		return errors.New("a question is either a form or a prompt")
	case q.Form != nil:
		return q.Form.check()
	}
	return q.Prompt.check()
}

func (f *Form) check() error {
	var schema struct {
		Type       string                                `json:"type"`
		Properties map[string]map[string]json.RawMessage `json:"properties"`
	}
	if f.Message == "" {
		return errors.New("a form needs a message")
	}
	if err := json.Unmarshal(f.Schema, &schema); err != nil || schema.Type != "object" {
		return errors.New("the schema of a form must be of type object")
	}
	for name, property := range schema.Properties {
		switch string(property["type"]) {
		case `"string"`, `"number"`, `"integer"`, `"boolean"`:
		case `"array"`: // of an enumeration
		default:
			return fmt.Errorf("the property %q of a form must be a string, a number, a boolean or an enumeration", name)
		}
	}
	return nil
}

// Fits says what is wrong with the content of an accepted form; nil where it is as the schema wants it.
func (f *Form) Fits(content json.RawMessage) error {
	var schema jsonschema.Schema
	var value any
	if err := json.Unmarshal(f.Schema, &schema); err != nil {
		return fmt.Errorf("the schema of the form: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the schema of the form: %w", err)
	}
	if err := json.Unmarshal(content, &value); err != nil {
		return fmt.Errorf("the content of the form: %w", err)
	}
	return resolved.Validate(value)
}

func (p *Prompt) check() error {
	if len(p.Messages) == 0 || p.MaxTokens <= 0 {
		return errors.New("a prompt needs a message and a limit of tokens")
	}
	for _, m := range p.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("the role of a message must be user or assistant, not %q", m.Role)
		}
	}
	return nil
}
