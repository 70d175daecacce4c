package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A tool asks its client in one way, tools.Input.Ask; what happens then is the era's. In the sessions
// era the client gets a request on the stream of the call, and the tool waits. In the stateless one the
// call is answered "input required", and made again by the client with the answer: see rounds.go.

const (
	maxAsked = 64      // requests of ours that may wait for one client
	maxReply = 1 << 20 // bytes of an answer to one
)

// request asks the client something by send, and waits for its answer: a result. The errors are the
// context's, that of send, and [tools.ErrNoReply] where the client refused, or said nothing for patience.
func (c *Conn) request(
	ctx context.Context, send func([]byte) error, method mcp.MCPMethod, params any, patience time.Duration,
) (json.RawMessage, error) {
	id, came, err := c.expect()
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	message, err := encode(struct {
		notification
		ID string `json:"id"`
	}{notification{mcp.JSONRPC_VERSION, string(method), params}, id})
	if err != nil {
		return nil, err
	}
	if err := send(message); err != nil {
		return nil, fmt.Errorf("%w: %s could not be sent: %w", tools.ErrNoReply, method, err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case f := <-came:
		return resultOf(f)
	case <-late.C:
		err = &silenceError{patience}
	case <-ctx.Done():
		err = ctx.Err()
	}
	if m, e := encode(notification{mcp.JSONRPC_VERSION, string(mcp.MethodNotificationCancelled), map[string]string{"requestId": id}}); e == nil && send(m) != nil {
		_ = c.tell(m)
	}
	return nil, err
}

// silenceError is that the client said nothing for so long.
type silenceError struct{ patience time.Duration }

func (e *silenceError) Error() string {
	return fmt.Sprintf("%s within %s", tools.ErrNoReply, e.patience)
}

func (*silenceError) Unwrap() error { return tools.ErrNoReply }

// expect makes an id for a request of ours, and room for its answer.
func (c *Conn) expect() (id string, came <-chan frame, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) >= maxAsked {
		return "", nil, fmt.Errorf("%w: it has %d questions to answer before this one", tools.ErrNoReply, len(c.asked))
	}
	c.asks++
	id = "funnel-" + strconv.FormatInt(c.asks, 10)
	one := make(chan frame, 1)
	c.asked["s"+id] = one
	return id, one, nil
}

func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, "s"+id)
}

// answered takes a response. One that nobody waits for, or not any more, is dropped.
func (c *Conn) answered(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if came := c.asked[f.key]; came != nil {
		delete(c.asked, f.key)
		came <- f
	}
}

// resultOf is what the client answered, or why it did not.
func resultOf(f frame) (json.RawMessage, error) {
	if f.size > maxReply {
		return nil, fmt.Errorf("%w that could be taken: it is %d bytes long, over %d", tools.ErrNoReply, f.size, maxReply)
	}
	if f.fault == nil {
		return f.result, nil
	}
	var refusal Fault
	if err := json.Unmarshal(f.fault, &refusal); err != nil {
		return nil, fmt.Errorf("%w: it answered with an error", tools.ErrNoReply)
	}
	return nil, fmt.Errorf("%w: it answered %s (%d)", tools.ErrNoReply, quoted(refusal.Message), refusal.Code)
}

// asker is the [tools.Asker] of a call; ctx is the call's.
func (k *call) asker(ctx context.Context) tools.Asker {
	return func(c context.Context, q tools.Question) (tools.Reply, error) {
		method, params := wordsOf(q)
		if err := able(k.can(), method); err != nil {
			return tools.Reply{}, err
		}
		c, stop := context.WithCancel(c)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		result, err := k.conn.request(c, k.notes.forward, method, params, k.conn.server.askTimeout)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return tools.Reply{}, err
		}
		return replyOf(q, result)
	}
}

// able says what the client lacks for a request of ours; nil: nothing.
func able(has mcp.ClientCapabilities, method mcp.MCPMethod) *tools.CapabilityError {
	switch method {
	case mcp.MethodElicitationCreate:
		// A capability that names no mode means forms.
		if e := has.Elicitation; e == nil || e.Form == nil && e.URL != nil {
			return &tools.CapabilityError{Capability: "elicitation"}
		}
	case mcp.MethodSamplingCreateMessage:
		if has.Sampling == nil {
			return &tools.CapabilityError{Capability: "sampling"}
		}
	}
	return nil
}

// wordsOf is a question as MCP has it.
func wordsOf(q tools.Question) (mcp.MCPMethod, any) {
	if q.Form != nil {
		return mcp.MethodElicitationCreate, mcp.ElicitationParams{Message: q.Form.Message, RequestedSchema: q.Form.Schema}
	}
	p := mcp.CreateMessageParams{SystemPrompt: q.Prompt.System, MaxTokens: q.Prompt.MaxTokens}
	for _, m := range q.Prompt.Messages {
		p.Messages = append(p.Messages, mcp.SamplingMessage{Role: mcp.Role(m.Role), Content: mcp.NewTextContent(m.Text)})
	}
	return mcp.MethodSamplingCreateMessage, p
}

// replyOf reads what the client answered to a question.
func replyOf(q tools.Question, result json.RawMessage) (tools.Reply, error) {
	if q.Form != nil {
		return formReply(result)
	}
	return promptReply(result)
}

func formReply(result json.RawMessage) (tools.Reply, error) {
	var r struct {
		Action  tools.Action
		Content json.RawMessage
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return tools.Reply{}, errNotReply
	}
	switch r.Action {
	case tools.Declined, tools.Closed:
		return tools.Reply{Action: r.Action}, nil
	case tools.Accepted:
	default:
		return tools.Reply{}, fmt.Errorf("%w to the form: action is neither accept, decline nor cancel", tools.ErrNoReply)
	}
	if r.Content == nil || string(r.Content) == "null" {
		r.Content = json.RawMessage("{}")
	}
	if r.Content[0] != '{' {
		return tools.Reply{}, fmt.Errorf("%w to the form: its content is %s, not an object", tools.ErrNoReply, kindOf(r.Content))
	}
	return tools.Reply{Action: r.Action, Content: r.Content}, nil
}

var errNotReply = fmt.Errorf("%w that could be read", tools.ErrNoReply)

// promptReply gathers the text; its content is one block or, since 2025-11-25, several.
func promptReply(result json.RawMessage) (tools.Reply, error) {
	type block struct{ Type, Text string }
	var r struct {
		Content    json.RawMessage
		Model      string
		StopReason string
	}
	var blocks []block
	err := json.Unmarshal(result, &r)
	if err == nil && len(r.Content) > 0 && r.Content[0] == '[' {
		err = json.Unmarshal(r.Content, &blocks)
	} else if err == nil {
		blocks = make([]block, 1)
		err = json.Unmarshal(r.Content, &blocks[0])
	}
	if err != nil {
		return tools.Reply{}, errNotReply
	}
	var text []string
	for _, b := range blocks {
		if b.Type == "text" {
			text = append(text, b.Text)
		}
	}
	if len(text) == 0 {
		return tools.Reply{}, fmt.Errorf("%w in words", tools.ErrNoReply)
	}
	return tools.Reply{Text: strings.Join(text, "\n"), Model: r.Model, Stop: r.StopReason}, nil
}
