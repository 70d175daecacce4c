package httpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// serveMCP serves /mcp: streamable HTTP, with sessions (protocols 2025-03-26 to 2025-11-25) or stateless
// (2026-07-28). Each request decides which.
func (h *httpServer) serveMCP(w http.ResponseWriter, r *http.Request, who caller) {
	if n := len(r.Header.Values(mcp.HeaderProtocolVersion)); n > 1 { // a proxy may use another one than this server
		no := refuse(http.StatusBadRequest, "%d MCP-Protocol-Version headers; send one", n)
		no.close = true // the body stays unread
		no.write(w)
		return
	}
	switch modern := mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)); {
	case r.Method == http.MethodPost:
		h.servePost(w, r, who)
	case modern:
		w.Header().Set("Allow", http.MethodPost)
		refuse(http.StatusMethodNotAllowed,
			"protocol %s has neither sessions nor a GET stream; use POST, and subscriptions/listen for changes",
			mcp.ProtocolVersion20260728).write(w)
	case r.Method == http.MethodGet:
		h.serveGet(w, r, who)
	default:
		h.serveDelete(w, r, who)
	}
}

func (h *httpServer) servePost(w http.ResponseWriter, r *http.Request, who caller) {
	asJSON, asStream := acceptedTypes(r)
	if !asJSON && !asStream {
		refuse(
			http.StatusNotAcceptable, "the response is application/json or text/event-stream; name both in Accept",
		).write(w)
		return
	}
	body, no := h.readBody(w, r, who.owner)
	if no != nil {
		no.write(w)
		return
	}
	defer h.bodyBytes.release(who.owner, len(body))
	x := newExchange(w, h.write, asJSON, asStream)
	if jsonrpc.IsBatch(body) {
		h.serveBatch(r, who, x, body)
		return
	}
	f, fault := jsonrpc.Parse(body)
	if fault != nil {
		x.writeFault(http.StatusBadRequest, f.ID, fault)
		return
	}
	if f.Stateless() || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		h.serveStateless(r, who, x, f)
		return
	}
	if fault := checkVersion(r); fault != nil {
		x.writeFault(http.StatusBadRequest, f.ID, fault)
		return
	}
	if f.ID != nil && !f.IsResponse && h.refuseDraining(x, f) {
		return
	}
	if f.Method == string(mcp.MethodInitialize) && f.ID != nil {
		h.openSession(r, who, x, f)
		return
	}
	s := h.findSession(x, r, who, f.ID)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	if h.relayPost(s, f, body) {
		x.writeAccepted()
		return
	}
	if other := h.server.Misdirected(f); other != "" {
		x.writeFault(http.StatusMisdirectedRequest, nil, jsonrpc.BadRequest(
			"replica %s waits for this response, and %s got it; have the balancer send all requests of a session to one replica",
			jsonrpc.Echo(other), h.replicaName()))
		return
	}
	work, _, over := s.conn.TryFrame(context.WithoutCancel(r.Context()), f, x.send)
	if over != nil {
		x.writeOverLimit(f.ID, over)
		return
	}
	h.awaitAnswer(r.Context(), x, work, nil)
}

// findSession returns the session that the request names, in use until release. If there is none, it answers the
// request and returns nil.
func (h *httpServer) findSession(x *exchange, r *http.Request, who caller, id json.RawMessage) *httpSession {
	names := r.Header.Values(mcp.HeaderSessionID)
	if len(names) != 1 || names[0] == "" {
		x.writeFault(http.StatusBadRequest, id, jsonrpc.BadRequest(
			"send exactly one Mcp-Session-Id header, with the ID from the response to initialize"))
		return nil
	}
	s := h.sessions.use(names[0], who.owner)
	if s == nil {
		var no *refusal
		if s, no = h.takeUp(who.owner, names[0]); no != nil {
			no.write(x.w)
			return nil
		}
	}
	if s != nil && s.legacy.Load() != nil { // opened by /sse
		h.sessions.release(s)
		s = nil
	}
	if s != nil && s.sealed != nil { // notifications/initialized may have reached another replica
		s.conn.SetReady()
	}
	if s == nil {
		x.writeFault(
			http.StatusNotFound, id,
			jsonrpc.BadRequest("session not found or expired; start a new one with initialize"))
	}
	return s
}

// openSession answers an initialize request, and opens a session if it succeeds.
func (h *httpServer) openSession(r *http.Request, who caller, x *exchange, f jsonrpc.Frame) {
	var n nonce
	_, _ = rand.Read(n[:]) // never fails
	conn := h.server.ConnectAs(h.ctx, n.connID())
	_ = conn.Identify(who.owner, f)
	var answer []byte
	conn.AcceptFrame(r.Context(), f, func(m []byte, last func()) error {
		if last != nil {
			answer = m
		}
		return nil
	})
	if !conn.Initialized() {
		conn.End(errRetired)
		_ = x.send(answer, func() {})
		return
	}
	s, no := h.addSession(who.owner, n, conn)
	if no != nil {
		conn.End(errRetired)
		no.write(x.w)
		return
	}
	defer h.sessions.release(s)
	x.w.Header().Set(mcp.HeaderSessionID, s.id)
	_ = x.send(answer, func() {})
}

// serveBatch serves an array of messages, which only protocol 2025-03-26 has.
func (h *httpServer) serveBatch(r *http.Request, who caller, x *exchange, body []byte) {
	if fault := checkVersion(r); fault != nil || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		if fault == nil {
			fault = server.ErrNoBatch
		}
		x.writeFault(http.StatusBadRequest, nil, fault)
		return
	}
	if h.refuseDraining(x, jsonrpc.Frame{}) {
		return
	}
	s := h.findSession(x, r, who, nil)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	x.batch = true
	h.awaitAnswer(r.Context(), x, s.conn.AcceptBatch(context.WithoutCancel(r.Context()), body, x.send), nil)
}

// serveStateless serves a request of the stateless protocol on a connection of its own, because two clients of one
// identity may use the same request IDs.
func (h *httpServer) serveStateless(r *http.Request, who caller, x *exchange, f jsonrpc.Frame) {
	x.stateless = true
	if f.ID != nil && h.refuseDraining(x, f) {
		return
	}
	fault := checkHeaders(r, f)
	if fault == nil {
		fault = h.server.CheckParamHeaders(f, func(name string) (string, bool) { return oneHeader(r, name) })
	}
	if fault != nil {
		x.writeFault(http.StatusBadRequest, f.ID, fault)
		return
	}
	conn := h.server.Connect(h.ctx)
	defer conn.End(server.ErrCancelled)
	if fault = conn.Identify(who.owner, f); fault != nil {
		x.writeFault(http.StatusBadRequest, f.ID, fault)
		return
	}
	if f.ID != nil && f.Method == string(mcp.MethodSubscriptionsListen) { // it stays open, as a session's stream does
		if !x.asStream {
			refuse(
				http.StatusNotAcceptable, "the response to %s is text/event-stream; name it in Accept", f.Method,
			).write(x.w)
			return
		}
		if full := h.streams.Acquire(who.owner, 1); full != nil {
			x.writeFault(http.StatusServiceUnavailable, f.ID, jsonrpc.Faultf(jsonrpc.CodeBusy, "busy: "+streamsFull, full))
			return
		}
		defer h.streams.Release(who.owner, 1)
		x.listens = true
	}
	h.serveFrame(r.Context(), conn, x, f)
}

// serveFrame passes the message to the connection and returns when awaitAnswer does. A client that leaves cancels its
// call, as the stateless protocol demands.
func (h *httpServer) serveFrame(ctx context.Context, conn *server.Conn, x *exchange, f jsonrpc.Frame) {
	work, cancel, over := conn.TryFrame(ctx, f, x.send)
	if over != nil {
		x.writeOverLimit(f.ID, over)
		return
	}
	if cancel == nil {
		cancel = func() {}
	}
	h.awaitAnswer(ctx, x, work, cancel)
}

// awaitAnswer runs work in a goroutine and returns when the client has its answer or work has ended without one. If
// ctx ends before, because the client left, it calls gone and returns; work may still run.
//
// A nil gone means that leaving cancels nothing, as the protocols with sessions demand: the client may have lost its
// connection, and cancels by notifications/cancelled. The call goes on until its own time limit at most, and keeps
// its places in all limits meanwhile. Its answer is dropped, since streams cannot be resumed.
func (h *httpServer) awaitAnswer(ctx context.Context, x *exchange, work func(), gone func()) {
	defer x.close()
	if work == nil {
		x.writeAccepted()
		return
	}
	done := make(chan struct{})
	start := h.run
	if x.listens { // without an end of its own: a drain does not wait for it
		start = h.running.Go
	}
	start(func() {
		defer close(done)
		work()
	})
	left := ctx.Done()
	if gone == nil {
		left = nil
	}
	alive := time.NewTicker(streamPing)
	defer alive.Stop()
	for {
		select {
		case <-x.answered:
			return
		case <-done:
			x.endUnanswered()
			return
		case <-left:
			gone()
			return
		case <-alive.C:
			x.ping()
		}
	}
}

// serveGet opens the stream of a session for messages that belong to no request in progress.
func (h *httpServer) serveGet(w http.ResponseWriter, r *http.Request, who caller) {
	x := newExchange(w, h.write, true, true)
	if _, asStream := acceptedTypes(r); !asStream {
		refuse(http.StatusNotAcceptable, "the response is text/event-stream; name it in Accept").write(w)
		return
	}
	if fault := checkVersion(r); fault != nil {
		x.writeFault(http.StatusBadRequest, nil, fault)
		return
	}
	if h.isDraining() {
		h.draining().write(w)
		return
	}
	s := h.findSession(x, r, who, nil)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	ctx, stop := h.sessions.replaceStream(r.Context(), s)
	defer stop()
	h.serveStream(ctx, w, s, func(out *jsonrpc.Outbox) func() {
		s.stream.Store(out)
		end := s.conn.Listen(func(m []byte, last func()) error { return out.Send(eventOf(m), last) })
		return func() { s.stream.CompareAndSwap(out, nil); end() }
	})
}

func (h *httpServer) serveDelete(w http.ResponseWriter, r *http.Request, who caller) {
	x := newExchange(w, h.write, true, true)
	s := h.findSession(x, r, who, nil)
	if s == nil {
		return
	}
	_ = h.publish(s, deleted, nil)
	h.sessions.drop(s, errDeleted)
	h.sessions.release(s)
	w.WriteHeader(http.StatusNoContent)
}

// streamsFull is the format of the error for one stream too many; its argument is a [jsonrpc.LimitError].
const streamsFull = "too many open streams: %s; close one, or raise --http-connections"

// serveStream sends the session's messages until the client or the session ends. begin connects the session to the
// outbox and must not block; serveStream calls the function it returns at the end.
func (h *httpServer) serveStream(
	ctx context.Context, w http.ResponseWriter, s *httpSession, begin func(*jsonrpc.Outbox) (end func()),
) {
	if full := h.streams.Acquire(s.owner, 1); full != nil {
		refuse(http.StatusServiceUnavailable, streamsFull, full).write(w)
		return
	}
	defer h.streams.Release(s.owner, 1)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	x := newExchange(w, h.write, true, true)
	out := jsonrpc.NewOutbox(x)
	end := begin(out) // before the client sees the stream, so that it misses no message
	x.openStream()
	var run sync.WaitGroup
	run.Go(out.Run)
	defer run.Wait()
	defer x.stopWrites()
	defer out.Fail(io.ErrClosedPipe)
	defer end()
	alive := time.NewTicker(streamPing)
	defer alive.Stop()
	for {
		select {
		case <-alive.C:
			_ = out.Send(aliveComment, nil)
		case <-ctx.Done():
			return
		case <-s.conn.Context().Done():
			return
		case <-out.Ctx.Done():
			return
		}
	}
}
