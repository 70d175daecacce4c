package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Asker sends a request to the client that made the call, and returns the result of its response as it was written:
// an elicitation, a sampling or the list of its roots.
//
// A client of a stateless protocol answers by repeating the call: the error is then [ErrAsked], the output
// of this run is dropped, and the tool runs again from its start, where the same question returns its answer
// at once. A tool must therefore ask before it changes anything, ask the same questions in the same order, one
// at a time, and return the error.
//
// Other errors: [*CapabilityError] if the client does not support the question, [ErrNoReply] if no usable reply
// came in time or the client refused, and the error of the context.
type Asker func(ctx context.Context, q Question) (json.RawMessage, error)

// Question is a request to a client: a method of MCP and its params, a JSON object.
type Question struct {
	Method string          `json:"method"` // elicitation/create, sampling/createMessage or roots/list
	Params json.RawMessage `json:"params"`
}

// Errors of an [Asker].
var (
	ErrAsked   = errors.New("the client was asked; it answers by repeating this call")
	ErrNoReply = errors.New("the client gave no reply")
)

// CapabilityError reports the capability that a client must declare to be asked.
type CapabilityError struct {
	Capability string // as MCP names it: "elicitation", "sampling", "roots"; "" where there is no client
}

func (e *CapabilityError) Error() string {
	if e.Capability == "" {
		return "there is no client to ask: this tool needs one"
	}
	return fmt.Sprintf("this client cannot be asked: it does not declare the capability %q", e.Capability)
}

// NoClient is the [Asker] of the command line, which has no client to ask. It always returns a [*CapabilityError].
func NoClient(context.Context, Question) (json.RawMessage, error) { return nil, &CapabilityError{} }
