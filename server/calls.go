package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/base/stack"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// lateGrace is the time after its deadline in which a call may still answer. After that the server answers instead.
// A tool that ignores its context keeps its call slot until it ends.
const lateGrace = 400 * time.Millisecond

// startCall acquires a slot for a call and registers it, or returns a fault if the server is ending or busy.
func (c *Conn) startCall(
	ctx context.Context, f jsonrpc.Frame, send jsonrpc.Send,
) (context.Context, *call, *jsonrpc.Fault) {
	if c.ctx.Err() != nil {
		return nil, nil, jsonrpc.Faultf(jsonrpc.CodeEnding, "%s: the server is ending", f.Method)
	}
	if fault := c.server.identityLimit.acquire(c.account.Owner, f.Method); fault != nil {
		return nil, nil, fault
	}
	limit := &c.server.callLimit
	if c.server.isUpstreamTool(f) {
		limit = &c.server.upstreamLimit
	}
	if fault := limit.Acquire(c.account.Owner, f.Size); fault != nil {
		c.server.identityLimit.release(c.account.Owner, f.Method)
		return nil, nil, fault
	}
	k := c.newCall(f, send)
	k.limit = limit
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	return c.register(ctx, k), k, nil
}

// register adds a call with one worker to those in flight, and returns its context. The caller must hold mu.
func (c *Conn) register(ctx context.Context, k *call) context.Context {
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.detach = context.AfterFunc(c.ctx, func() { k.cancel(ErrEnding) })
	c.calls[k.frame.Key] = k
	c.running++
	k.workers++
	return ctx
}

func (c *Conn) newCall(f jsonrpc.Frame, send jsonrpc.Send) *call {
	messages, level := true, mcp.LoggingLevel(f.LogLevel)
	if !f.Stateless() {
		messages, level = c.agreed.Load().protocol >= mcp.ProtocolVersion20250326, *c.logLevel.Load()
	}
	return &call{conn: c, frame: f, send: send, notes: jsonrpc.NewNotifier(send, f.ProgressToken, level, messages)}
}

// run runs a call that startCall registered, and answers it. If another goroutine answers, run returns only after
// that answer is sent, since the transport may close the stream when run returns.
func (k *call) run(ctx context.Context) {
	stack.Grow()
	k.sendNotice()
	s := k.conn.server
	allowed := s.options.CallTimeout
	if s.isUpstreamTool(k.frame) {
		allowed = upstreamCallTime
	}
	ctx, stop := context.WithTimeout(ctx, allowed)
	if !s.isUpstreamTool(k.frame) { // an upstream server reports its own progress, and no other
		k.notes.StartHeartbeat()
	}
	late := time.AfterFunc(allowed+lateGrace, func() {
		s.options.Log.Warn("a call is overdue; the server answered it",
			"method", k.frame.Method, "tool", k.frame.StringOrEmpty("name"))
		k.notes.Log(mcp.LoggingLevelWarning, "server",
			fmt.Sprintf("%s: overdue; the server answered it", jsonrpc.Echo(k.frame.Method)))
		k.answer(s.overdueResult(k.frame))
	})
	left := sync.OnceFunc(k.removeWorker)
	defer func() {
		late.Stop()
		k.detach()
		stop()
		k.cancel(nil)
		left()
	}()
	result, fault := s.dispatch(ctx, k)
	k.answerAndRelease(result, fault, left)
	left()
	k.conn.waitUntil(context.Background(), func(*Conn) bool { return k.answerSent }) // short: writes have a timeout
}

// answer sends the answer, unless the call was answered or cancelled before.
func (k *call) answer(result any, fault *jsonrpc.Fault) { k.answerAndRelease(result, fault, func() {}) }

// answerAndRelease is answer for a worker of the call. It calls left before the client can read the answer, so that
// the client can use the slot for its next call.
func (k *call) answerAndRelease(result any, fault *jsonrpc.Fault, left func()) {
	k.notes.Close()
	if !k.claim() {
		return
	}
	_ = k.send(jsonrpc.Response(k.frame.ID, forEncoding(result), fault), left)
	k.countAnswered()
}

// countAnswered records that the answer was sent, or that none will be.
func (k *call) countAnswered() {
	k.conn.updateCounts(func(c *Conn) {
		k.answerSent = true
		if !k.isListen {
			c.unanswered--
		}
	})
}

// claim reports whether the caller is the first to end the call, and removes the call from those in flight.
func (k *call) claim() bool {
	c := k.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.claimed {
		return false
	}
	k.claimed = true
	if c.calls[k.frame.Key] == k {
		delete(c.calls, k.frame.Key)
	}
	return true
}

// abort cancels this call; it gets no answer. Unlike cancelID it never hits a later call with the same id.
func (k *call) abort() {
	if k.claim() {
		k.cancel(ErrCancelled)
		go k.notes.Close() // which waits for a slow client
		k.countAnswered()
	}
}

// FailOpenCalls answers every open call with a fault and cancels its context.
func (c *Conn) FailOpenCalls(fault *jsonrpc.Fault) {
	c.mu.Lock()
	open := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		if !k.isListen {
			open = append(open, k)
		}
	}
	c.mu.Unlock()
	for _, k := range open {
		k.cancel(ErrEnding)
		k.answer(nil, fault)
	}
}

func (c *Conn) inFlight(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[key] != nil
}

// cancelID cancels the call with this id; it gets no answer. It ignores ids that are unknown or already answered.
func (c *Conn) cancelID(key string) {
	c.mu.Lock()
	k := c.calls[key]
	c.mu.Unlock()
	if k != nil {
		k.abort()
	}
}
