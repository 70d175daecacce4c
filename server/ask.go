package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A tool may ask its client, by tools.Input.Ask, in every protocol. In the sessions era the server sends the client
// a request on the stream of the call, and the tool waits. In the stateless era the server answers the call with
// "input required", and the client repeats the call with its reply: see round_trips.go.

const (
	maxAsked = 64      // open requests to one client
	maxReply = 1 << 20 // bytes of a response to one request
)

// request sends the client a request and returns the result of its response. It returns the error of the context,
// or [tools.ErrNoReply] if send fails, the client refuses or does not respond within patience.
func (c *Conn) request(
	ctx context.Context, send func([]byte) error, method mcp.MCPMethod, params any, patience time.Duration,
) (json.RawMessage, error) {
	id, reply, err := c.registerRequest()
	if err != nil {
		return nil, err
	}
	defer c.unregisterRequest(id)
	message, err := jsonrpc.Request(id, string(method), params)
	if err != nil {
		return nil, err
	}
	if err := send(message); err != nil {
		return nil, fmt.Errorf("%w: %s could not be sent: %w", tools.ErrNoReply, method, err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case f := <-reply:
		return resultOfResponse(f)
	case <-late.C:
		err = fmt.Errorf("%w within %s", errSilent, patience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if m, e := jsonrpc.Notification(
		string(mcp.MethodNotificationCancelled), map[string]string{"requestId": id},
	); e == nil && send(m) != nil {
		_ = c.SendOwn(m)
	}
	return nil, err
}

// errSilent reports that the client did not respond in time.
var errSilent = fmt.Errorf("%w", tools.ErrNoReply)

// registerRequest returns the id of a new request to the client, and the channel that receives its response. The
// caller must call unregisterRequest. It returns [tools.ErrNoReply] if 64 requests are open.
func (c *Conn) registerRequest() (id string, reply <-chan jsonrpc.Frame, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.awaiting) >= maxAsked {
		return "", nil, fmt.Errorf("%w: it has not answered %d earlier requests", tools.ErrNoReply, len(c.awaiting))
	}
	c.requests++
	id = "funnel-" + strconv.FormatInt(c.requests, 10)
	one := make(chan jsonrpc.Frame, 1)
	c.awaiting[jsonrpc.StringKey(id)] = one
	return id, one, nil
}

func (c *Conn) unregisterRequest(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.awaiting, jsonrpc.StringKey(id))
}

// handleResponse passes a response to the goroutine that waits for it. It drops a response for which none waits.
func (c *Conn) handleResponse(f jsonrpc.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply := c.awaiting[f.Key]; reply != nil {
		delete(c.awaiting, f.Key)
		reply <- f
	}
}

// resultOfResponse returns the result in a response, or an error if the response is an error or over 1 MiB.
func resultOfResponse(f jsonrpc.Frame) (json.RawMessage, error) {
	if f.Size > maxReply {
		return nil, fmt.Errorf(
			"%w within the size limit: the reply is %d bytes long, over %d", tools.ErrNoReply, f.Size, maxReply,
		)
	}
	if f.Error == nil {
		return f.Result, nil
	}
	var refusal jsonrpc.Fault
	if err := json.Unmarshal(f.Error, &refusal); err != nil {
		return nil, fmt.Errorf("%w: it answered with an error", tools.ErrNoReply)
	}
	return nil, fmt.Errorf("%w: it answered %s (%d)", tools.ErrNoReply, jsonrpc.Quoted(refusal.Message), refusal.Code)
}

// asker returns the [tools.Asker] of a call in the sessions era; ctx is the call's context.
func (k *call) asker(ctx context.Context) tools.Asker {
	return func(c context.Context, q tools.Question) (tools.Reply, error) {
		method, params := clientRequest(q)
		if err := missingCapability(k.capabilities(), method); err != nil {
			return tools.Reply{}, err
		}
		c, stop := context.WithCancel(c)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		result, err := k.conn.request(c, k.notes.Forward, method, params, k.conn.server.options.AskTimeout)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return tools.Reply{}, err
		}
		return parseReply(q, result)
	}
}

// missingCapability returns the capability that the client lacks for a request of this method, or nil.
func missingCapability(has mcp.ClientCapabilities, method mcp.MCPMethod) *tools.CapabilityError {
	switch method {
	case mcp.MethodElicitationCreate:
		// An elicitation capability without a mode means forms.
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

// clientRequest converts a question into an MCP method and its params.
func clientRequest(q tools.Question) (mcp.MCPMethod, any) {
	if q.Form != nil {
		return mcp.MethodElicitationCreate, mcp.ElicitationParams{Message: q.Form.Message, RequestedSchema: q.Form.Schema}
	}
	p := mcp.CreateMessageParams{SystemPrompt: q.Prompt.System, MaxTokens: q.Prompt.MaxTokens}
	for _, m := range q.Prompt.Messages {
		p.Messages = append(p.Messages, mcp.SamplingMessage{Role: mcp.Role(m.Role), Content: mcp.NewTextContent(m.Text)})
	}
	return mcp.MethodSamplingCreateMessage, p
}

// parseReply decodes the client's reply to a question.
func parseReply(q tools.Question, result json.RawMessage) (tools.Reply, error) {
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
		return tools.Reply{}, fmt.Errorf("%w to the form: action must be accept, decline or cancel", tools.ErrNoReply)
	}
	if r.Content == nil || string(r.Content) == "null" {
		r.Content = json.RawMessage("{}")
	}
	if r.Content[0] != '{' {
		return tools.Reply{}, fmt.Errorf(
			"%w to the form: its content must be an object, not %s", tools.ErrNoReply, jsonrpc.KindOf(r.Content),
		)
	}
	return tools.Reply{Action: r.Action, Content: r.Content}, nil
}

var errNotReply = fmt.Errorf("%w that could be read", tools.ErrNoReply)

// promptReply joins the text blocks of a sampling result. Its content is one block or, since 2025-11-25, several.
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
		return tools.Reply{}, fmt.Errorf("%w with text", tools.ErrNoReply)
	}
	return tools.Reply{Text: strings.Join(text, "\n"), Model: r.Model, Stop: r.StopReason}, nil
}
