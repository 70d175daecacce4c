package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// serveMCP is /mcp: streamable HTTP, of the sessions era (2025-03-26 to 2025-11-25) and of the stateless
// one (2026-07-28). Which of them is decided by each request.
func (h *web) serveMCP(w http.ResponseWriter, r *http.Request, who caller) {
	if n := len(r.Header.Values(mcp.HeaderProtocolVersion)); n > 1 { // which of them counts, others may see otherwise
		no := refusef(http.StatusBadRequest, "%d MCP-Protocol-Version headers; send one", n)
		no.close = true // with what may come of the body
		no.write(w)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, who)
	case http.MethodGet:
		h.get(w, r, who)
	default:
		h.delete(w, r, who)
	}
}

func (h *web) post(w http.ResponseWriter, r *http.Request, who caller) {
	asJSON, asStream := accepts(r)
	if !asJSON && !asStream {
		refusef(http.StatusNotAcceptable, "the answer is application/json or text/event-stream; name both in Accept").write(w)
		return
	}
	body, no := h.read(w, r, who.owner)
	if no != nil {
		no.write(w)
		return
	}
	defer h.bodies.give(who.owner, len(body))
	x := newExchange(w, h.write, asJSON, asStream)
	if isBatch(body) {
		h.batch(r, who, x, body)
		return
	}
	f, fault := parse(body)
	if fault != nil {
		x.refuse(http.StatusBadRequest, f.id, fault)
		return
	}
	if f.modern() || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		h.stateless(r, who, x, f)
		return
	}
	if fault := checkVersion(r); fault != nil {
		x.refuse(http.StatusBadRequest, f.id, fault)
		return
	}
	if f.method == string(mcp.MethodInitialize) && f.id != nil {
		h.initialize(r, who, x, f)
		return
	}
	s := h.session(x, r, who, f.id)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	h.exchange(r.Context(), s.conn, x, f)
}

// session finds the one that the request names, or refuses it.
func (h *web) session(x *exchange, r *http.Request, who caller, id json.RawMessage) *httpSession {
	names := r.Header.Values(mcp.HeaderSessionID)
	if len(names) != 1 || names[0] == "" {
		x.refuse(http.StatusBadRequest, id, faultf(mcp.INVALID_REQUEST,
			"one Mcp-Session-Id header is needed; the answer to initialize brings it"))
		return nil
	}
	s := h.sessions.use(names[0], who.owner)
	if s != nil && h.sessions.carried(s) != nil { // of /sse
		h.sessions.release(s)
		s = nil
	}
	if s == nil {
		x.refuse(http.StatusNotFound, id, faultf(mcp.INVALID_REQUEST, "there is no such session (any more); begin again with initialize"))
	}
	return s
}

// initialize opens a session where nothing is wrong with the request.
func (h *web) initialize(r *http.Request, who caller, x *exchange, f frame) {
	conn := h.server.Connect(h.ctx)
	conn.who, _ = accounted(who.owner, conn, f)
	var answer []byte
	conn.acceptFrame(r.Context(), f, func(m []byte, last func()) error {
		if last != nil {
			answer = m
		}
		return nil
	})
	if !conn.session.initialized() {
		conn.end(errRetired)
		_ = x.send(answer, func() {})
		return
	}
	s, no := h.sessions.add(who.owner, conn)
	if no != nil {
		conn.end(errRetired)
		no.write(x.w)
		return
	}
	defer h.sessions.release(s)
	x.w.Header().Set(mcp.HeaderSessionID, s.id)
	_ = x.send(answer, func() {})
}

// batch is an array of messages, which protocol 2025-03-26 alone has.
func (h *web) batch(r *http.Request, who caller, x *exchange, body []byte) {
	if fault := checkVersion(r); fault != nil || mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		if fault == nil {
			fault = errNoBatch
		}
		x.refuse(http.StatusBadRequest, nil, fault)
		return
	}
	s := h.session(x, r, who, nil)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	x.batch = true
	h.finish(r.Context(), x, s.conn.acceptBatch(r.Context(), body, x.send), func() {})
}

// stateless serves a request of the stateless era: by a connection of its own, since ids are the client's
// and two clients of one identity know nothing of each other.
func (h *web) stateless(r *http.Request, who caller, x *exchange, f frame) {
	x.modern = true
	fault := checkHeaders(r, f)
	if fault == nil {
		fault = h.server.checkParams(r, f)
	}
	if fault != nil {
		x.refuse(http.StatusBadRequest, f.id, fault)
		return
	}
	conn := h.server.Connect(h.ctx)
	defer conn.end(errCancelled)
	if conn.who, fault = accounted(who.owner, conn, f); fault != nil {
		x.refuse(http.StatusBadRequest, f.id, fault)
		return
	}
	if f.id != nil && f.method == string(mcp.MethodSubscriptionsListen) { // it stays, as a session's stream does
		if !x.asStream {
			refusef(http.StatusNotAcceptable, "%s is answered as text/event-stream; name it in Accept", f.method).write(x.w)
			return
		}
		if full := h.streams.enter(who.owner); full != nil {
			x.refuse(http.StatusServiceUnavailable, f.id, faultf(codeBusy, "busy: "+streamsFull, full))
			return
		}
		defer h.streams.leave(who.owner)
	}
	h.exchange(r.Context(), conn, x, f)
}

// exchange has the connection take the message, and stays until it is answered.
func (h *web) exchange(ctx context.Context, conn *Conn, x *exchange, f frame) {
	work, k := conn.acceptFrame(ctx, f, x.send)
	h.finish(ctx, x, work, func() {
		if k != nil {
			k.abandon()
		}
	})
}

// finish runs the work and returns once the client has its answer, or is gone, or the work has ended without one.
func (h *web) finish(ctx context.Context, x *exchange, work func(), gone func()) {
	defer x.close()
	if work == nil {
		x.accepted()
		return
	}
	done := make(chan struct{})
	h.works.Add(1)
	go func() {
		defer h.works.Done()
		defer close(done)
		work()
	}()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-x.answered:
			return
		case <-done:
			x.unanswered()
			return
		case <-ctx.Done():
			gone()
			return
		case <-alive.C:
			x.alive()
		}
	}
}

// get opens the stream of a session, for what is not about a request under way.
func (h *web) get(w http.ResponseWriter, r *http.Request, who caller) {
	x := newExchange(w, h.write, true, true)
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		h.noSessions(w)
		return
	}
	if _, asStream := accepts(r); !asStream {
		refusef(http.StatusNotAcceptable, "the stream is text/event-stream; name it in Accept").write(w)
		return
	}
	if fault := checkVersion(r); fault != nil {
		x.refuse(http.StatusBadRequest, nil, fault)
		return
	}
	s := h.session(x, r, who, nil)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	ctx, stop := h.sessions.listen(r.Context(), s)
	defer stop()
	h.stream(ctx, w, s, func(out *outbox) func() {
		return s.conn.Listen(func(m []byte, last func()) error { return out.send(eventOf(m), last) })
	})
}

func (h *web) noSessions(w http.ResponseWriter) {
	w.Header().Set("Allow", http.MethodPost)
	refusef(http.StatusMethodNotAllowed, "protocol %s has no sessions and no stream of its own: POST only, subscriptions/listen for changes",
		mcp.ProtocolVersion20260728).write(w)
}

func (h *web) delete(w http.ResponseWriter, r *http.Request, who caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		h.noSessions(w)
		return
	}
	x := newExchange(w, h.write, true, true)
	s := h.session(x, r, who, nil)
	if s == nil {
		return
	}
	h.sessions.drop(s, errDeleted)
	h.sessions.release(s)
	w.WriteHeader(http.StatusNoContent)
}

// streamsFull says why no further stream is opened.
const streamsFull = "the streams that are open, %s, are the most there may be; close one, or raise --http-connections"

// stream sends what the session has to tell, until the client or the session is gone. begin says where to
// send it, and must not wait; what it returns is called at the end.
func (h *web) stream(ctx context.Context, w http.ResponseWriter, s *httpSession, begin func(*outbox) (end func())) {
	if full := h.streams.enter(s.owner); full != nil {
		refusef(http.StatusServiceUnavailable, streamsFull, full).write(w)
		return
	}
	defer h.streams.leave(s.owner)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	x := newExchange(w, h.write, true, true)
	out := newOutbox(x)
	end := begin(out) // what is told from the moment that the client sees the stream is on it
	x.open()
	var run sync.WaitGroup
	run.Go(out.run)
	defer run.Wait()
	defer x.cut()
	defer out.fail(io.ErrClosedPipe)
	defer end()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-alive.C:
			_ = out.send(aliveComment, nil)
		case <-ctx.Done():
			return
		case <-s.conn.ctx.Done():
			return
		case <-out.done.Done():
			return
		}
	}
}
