package server

import (
	"bytes"
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Handle handles one message and returns when the notifications of its call and its answer are sent.
func (c *Conn) Handle(ctx context.Context, message []byte, send jsonrpc.Send) {
	if work := c.Accept(ctx, message, send); work != nil {
		work()
	}
}

// Accept handles one message without waiting for its call. If the message starts a call, Accept returns its work,
// which the caller runs in its own goroutine. Accept must be called in the order in which the messages arrived.
func (c *Conn) Accept(ctx context.Context, message []byte, send jsonrpc.Send) (work func()) {
	if jsonrpc.IsBatch(message) {
		return c.AcceptBatch(ctx, message, send)
	}
	f, fault := jsonrpc.Parse(message)
	if fault != nil {
		send.Answer(f.ID, nil, fault)
		return nil
	}
	work, _ = c.AcceptFrame(ctx, f, send)
	return work
}

// AcceptFrame is [Conn.Accept] for a parsed message. cancel ends the call that the message started; it is nil if the
// message started none.
func (c *Conn) AcceptFrame(ctx context.Context, f jsonrpc.Frame, send jsonrpc.Send) (work, cancel func()) {
	work, cancel, over := c.TryFrame(ctx, f, send)
	if over != nil {
		send.Answer(f.ID, nil, over)
	}
	return work, cancel
}

// TryFrame is [Conn.AcceptFrame] for transports with an answer of their own for an identity that is over a limit: then
// it sends nothing and returns a fault, whose data are an [OverLimit].
func (c *Conn) TryFrame(
	ctx context.Context, f jsonrpc.Frame, send jsonrpc.Send,
) (work, cancel func(), over *jsonrpc.Fault) {
	if f.IsResponse {
		c.handleResponse(f)
		return nil, nil, nil
	}
	if f.ID == nil {
		c.handleNotification(f)
		return nil, nil, nil
	}
	if c.inFlight(f.Key) {
		// The answer has no id: under the id it would pass for the answer to the first request.
		send.Answer(nil, nil, jsonrpc.BadRequest("the id %s is in flight; the second request with it was not run",
			jsonrpc.Echo(string(f.ID))))
		return nil, nil, nil
	}
	if c.answerAtOnce(ctx, f, send) {
		return nil, nil, nil
	}
	if f.Stateless() && f.Method == string(mcp.MethodSubscriptionsListen) {
		work, cancel = c.startListening(ctx, f, send)
		return work, cancel, nil
	}
	ctx, k, fault := c.startCall(ctx, f, send)
	if fault != nil {
		if limit, is := fault.Data.(OverLimit); is {
			if observe := c.server.overLimit.Load(); observe != nil {
				(*observe)(limit)
			}
			return nil, nil, fault
		}
		c.newCall(f, send).notes.Log(mcp.LoggingLevelWarning, "server", fault.Message)
		result, fault := busyResult(f, fault)
		send.Answer(f.ID, forEncoding(result), fault)
		return nil, nil, nil
	}
	return func() { k.run(ctx) }, k.abort, nil
}

// answerAtOnce answers ping and the requests on which later messages depend: they must neither queue nor be
// overtaken. It returns false for all other requests.
func (c *Conn) answerAtOnce(ctx context.Context, f jsonrpc.Frame, send jsonrpc.Send) bool {
	now := func() {
		result, fault := c.server.dispatch(ctx, c.newCall(f, send))
		send.Answer(f.ID, result, fault)
	}
	switch method := mcp.MCPMethod(f.Method); {
	case method == mcp.MethodPing && !f.Stateless():
		send.Answer(f.ID, struct{}{}, nil)
	case method == mcp.MethodInitialize, method == mcp.MethodServerDiscover:
		now()
	case !f.Stateless() && !c.Initialized():
		send.Answer(f.ID, nil, jsonrpc.BadRequest(
			"%s before initialize; send initialize first, or declare protocol version %s in _meta",
			jsonrpc.Echo(f.Method), mcp.ProtocolVersion20260728))
	case method == mcp.MethodSetLogLevel:
		now()
	default:
		return false
	}
	return true
}

// handleNotification handles a notification and ignores unknown ones.
func (c *Conn) handleNotification(f jsonrpc.Frame) {
	switch mcp.MCPMethod(f.Method) {
	case mcp.MethodNotificationCancelled:
		if key, _ := jsonrpc.KeyOf(f.Params["requestId"]); key != "" {
			c.cancelID(key)
		}
	case mcp.MethodNotificationInitialized:
		c.SetReady()
	case mcp.MethodNotificationRootsListChanged:
		if c.ready.Load() {
			c.roots.changed()
			if up := c.server.openedUpstreams(c.account); up != nil {
				go up.Tell(f.Method)
			}
		}
	}
}

// AcceptBatch is [Conn.Accept] for a JSON-RPC batch, which only protocol 2025-03-26 has. It sends the answers in one
// array when all are known, and notifications at once.
func (c *Conn) AcceptBatch(ctx context.Context, message []byte, send jsonrpc.Send) (work func()) {
	elements, fault := jsonrpc.SplitBatch(message)
	if fault == nil && c.agreed.Load().protocol != mcp.ProtocolVersion20250326 {
		fault = ErrNoBatch
	}
	if fault != nil {
		send.Answer(nil, nil, fault)
		return nil
	}
	var mu sync.Mutex
	var answers [][]byte
	collect := func(m []byte, answer func()) error {
		if answer == nil {
			return send(m, nil)
		}
		mu.Lock()
		defer mu.Unlock()
		answers = append(answers, bytes.TrimSuffix(m, []byte("\n")))
		return nil
	}
	c.updateCounts(func(c *Conn) { c.unanswered++ }) // the batch itself needs an answer
	var works []func()
	for _, e := range elements {
		if w := c.acceptInBatch(ctx, e, collect); w != nil {
			works = append(works, w)
		}
	}
	return func() {
		var all sync.WaitGroup
		for _, w := range works {
			all.Go(w)
		}
		all.Wait()
		mu.Lock() // a timer's goroutine answers an overdue call
		defer mu.Unlock()
		if len(answers) > 0 {
			_ = send(append(append([]byte("["), bytes.Join(answers, []byte(","))...), "]\n"...), func() {})
		}
		c.updateCounts(func(c *Conn) { c.unanswered-- })
	}
}

// ErrNoBatch is the fault for a batch in a protocol without batches.
var ErrNoBatch = jsonrpc.BadRequest(
	"only protocol %s has batches; send each message by itself", mcp.ProtocolVersion20250326)

// acceptInBatch accepts one message of a batch. It refuses initialize, which decides whether the protocol has
// batches, and methods of protocols without batches.
func (c *Conn) acceptInBatch(ctx context.Context, message []byte, send jsonrpc.Send) (work func()) {
	f, fault := jsonrpc.Parse(message)
	if fault == nil {
		fault = notInBatch(f)
		if fault == nil {
			work, _ = c.AcceptFrame(ctx, f, send)
		}
		if fault == nil || f.ID == nil { // a notification gets no answer
			return work
		}
	}
	send.Answer(f.ID, nil, fault)
	return nil
}

func notInBatch(f jsonrpc.Frame) *jsonrpc.Fault {
	switch method := mcp.MCPMethod(f.Method); {
	case method == mcp.MethodInitialize:
		return jsonrpc.BadRequest("initialize is not allowed in a batch; send it by itself")
	case f.Stateless(), method == mcp.MethodSubscriptionsListen, method == mcp.MethodServerDiscover:
		return jsonrpc.BadRequest("%s belongs to protocol %s, which has no batches; send it by itself",
			jsonrpc.Echo(f.Method), mcp.ProtocolVersion20260728)
	}
	return nil
}
