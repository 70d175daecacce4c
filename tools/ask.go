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
// A client of a stateless protocol answers by repeating the call: the error is then [ErrAsked], the output
// of this run is dropped, and the tool runs again from its start, where the same question returns its answer
// at once. A tool must therefore ask before it changes anything, ask the same questions in the same order, one
// at a time, and return the error.
//
// Other errors: [*CapabilityError] if the client does not support the question, [ErrNoReply] if no usable reply
// came in time, and the error of the context.
type Asker func(ctx context.Context, q Question) (Reply, error)

// Question is a form or a prompt: exactly one field is set.
type Question struct {
	Form   *Form
	Prompt *Prompt
}

// Form is a form that the user fills in or declines (MCP elicitation). It must not ask for secrets.
type Form struct {
	Message string
	Schema  json.RawMessage // a flat object: its properties are strings, numbers, booleans or enumerations
}

// Prompt is a request to the client's model (MCP sampling).
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
	Action  Action          // form: what the user did
	Content json.RawMessage // form: the values, an object that matches its schema; only if accepted

	Text  string // prompt: the text of the reply, without other content
	Model string // prompt: the model that replied
	Stop  string // prompt: why the reply ended: "endTurn", "maxTokens"; "" if the client does not say
}

// Action is what the user did with a form.
type Action string

// The actions.
const (
	Accepted Action = "accept"
	Declined Action = "decline" // the user said no
	Closed   Action = "cancel"  // the user closed the form without an answer
)

// Errors of an [Asker].
var (
	ErrAsked   = errors.New("the client was asked; it answers by repeating this call")
	ErrNoReply = errors.New("the client gave no reply")
)

// CapabilityError reports the capability that a client must declare to be asked.
type CapabilityError struct {
	Capability string // as MCP names it: "elicitation", "sampling"; "" where there is no client
}

func (e *CapabilityError) Error() string {
	if e.Capability == "" {
		return "there is no client to ask: this tool needs one"
	}
	return fmt.Sprintf("this client cannot be asked: it does not declare the capability %q", e.Capability)
}

// NoClient is the [Asker] of the command line, which has no client to ask. It always returns a [*CapabilityError].
func NoClient(context.Context, Question) (Reply, error) { return Reply{}, &CapabilityError{} }

// Check returns the error in a question, nil if it can be asked.
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

// Validate returns an error unless the content of an accepted form matches its schema.
func (f *Form) Validate(content json.RawMessage) error {
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
