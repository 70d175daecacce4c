package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
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
// or [tools.ErrNoReply] if send fails, the client refuses, does not respond within patience, or can no longer respond.
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
	case f, ok := <-reply:
		if !ok {
			return nil, errInputEnded
		}
		return resultOfResponse(f)
	case <-late.C:
		err = fmt.Errorf("%w within %s", tools.ErrNoReply, patience)
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

// registerRequest returns the id of a new request to the client, and the channel that receives its response. The
// caller must call unregisterRequest. It returns [tools.ErrNoReply] if 64 requests are open.
func (c *Conn) registerRequest() (id string, reply <-chan jsonrpc.Frame, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent {
		return "", nil, errInputEnded
	}
	if len(c.awaiting) >= maxAsked {
		return "", nil, fmt.Errorf("%w: it has not answered %d earlier requests", tools.ErrNoReply, len(c.awaiting))
	}
	c.requests++
	id = c.requestID(strconv.FormatInt(c.requests, 10))
	one := make(chan jsonrpc.Frame, 1)
	c.awaiting[jsonrpc.StringKey(id)] = one
	return id, one, nil
}

func (c *Conn) unregisterRequest(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.awaiting, jsonrpc.StringKey(id))
}

var errInputEnded = fmt.Errorf("%w: its input has ended", tools.ErrNoReply)

// EndInput makes questions fail, those that wait for a reply too. A transport calls it when the client's input has
// ended.
func (c *Conn) EndInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = true
	for _, reply := range c.awaiting {
		close(reply)
	}
	clear(c.awaiting)
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
	return nil, &refusedError{&refusal}
}

// refusedError is the error with which a client answers a question: both [tools.ErrNoReply] and the client's fault.
type refusedError struct{ fault *jsonrpc.Fault }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: it answered %s (%d)", tools.ErrNoReply, jsonrpc.Quoted(e.fault.Message), e.fault.Code)
}

// Unwrap is part of the interface of package errors.
func (e *refusedError) Unwrap() []error { return []error{tools.ErrNoReply, e.fault} }

// asker returns the [tools.Asker] of a call in the sessions era; ctx is the call's context.
func (k *call) asker(ctx context.Context) tools.Asker {
	return func(c context.Context, q tools.Question) (json.RawMessage, error) {
		c, stop := context.WithCancel(c)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		result, err := k.conn.ask(c, k.notes.Forward, k.capabilities(), q)
		if err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		return result, err
	}
}

// ask sends a question to a client with these capabilities.
func (c *Conn) ask(
	ctx context.Context, send func([]byte) error, has mcp.ClientCapabilities, q tools.Question,
) (json.RawMessage, error) {
	if err := missingCapability(has, q); err != nil {
		return nil, err
	}
	return c.request(ctx, send, mcp.MCPMethod(q.Method), q.Params, c.server.options.AskTimeout)
}

// missingCapability returns the capability that the client lacks for a question, or nil.
func missingCapability(has mcp.ClientCapabilities, q tools.Question) *tools.CapabilityError {
	switch mcp.MCPMethod(q.Method) {
	case mcp.MethodElicitationCreate:
		var p struct{ Mode string }
		_ = json.Unmarshal(q.Params, &p) // without a mode it is a form
		// An elicitation capability without a mode means forms.
		e := has.Elicitation
		if e == nil || p.Mode == "url" && e.URL == nil || p.Mode != "url" && e.Form == nil && e.URL != nil {
			return &tools.CapabilityError{Capability: "elicitation"}
		}
	case mcp.MethodSamplingCreateMessage:
		if has.Sampling == nil {
			return &tools.CapabilityError{Capability: "sampling"}
		}
	case mcp.MethodListRoots:
		if has.Roots == nil {
			return &tools.CapabilityError{Capability: "roots"}
		}
	default:
		return &tools.CapabilityError{Capability: q.Method}
	}
	return nil
}
