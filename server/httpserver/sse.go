package httpserver

import (
	"net/http"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// The transport of protocol 2024-11-05: the client opens a stream, whose first event names the URL to post to, and
// gets every answer on that stream. Only Options.SSE enables it.

// legacySession is the query parameter that names a message's stream. It grants nothing without the token.
const legacySession = "sessionId"

func (h *httpServer) serveSSE(w http.ResponseWriter, r *http.Request, who caller) {
	if _, asStream := acceptedTypes(r); !asStream {
		refuse(http.StatusNotAcceptable, "the stream is text/event-stream; name it in Accept").write(w)
		return
	}
	if h.isDraining() {
		h.draining().write(w)
		return
	}
	conn := h.server.Connect(h.ctx)
	defer conn.End(server.ErrCancelled) // also cancels its calls: nobody could read their answers
	_ = conn.Identify(who.owner, jsonrpc.Frame{})
	s, no := h.sessions.add(who.owner, conn)
	if no != nil {
		no.write(w)
		return
	}
	defer h.sessions.drop(s, errDeleted)
	h.serveStream(r.Context(), w, s, func(out *jsonrpc.Outbox) func() {
		out.Reserve = func(n int) bool { return h.unreadBytes.reserve(who.owner, 0, n) }
		out.Release = func(n int) { h.unreadBytes.release(who.owner, n) }
		s.legacy.Store(out)
		_ = out.Send([]byte("event: endpoint\ndata: /message?"+legacySession+"="+s.id+"\n\n"), nil)
		return conn.Listen(func(m []byte, last func()) error { return out.Send(eventOf(m), last) })
	})
}

func (h *httpServer) serveMessage(w http.ResponseWriter, r *http.Request, who caller) {
	s := h.sessions.use(r.URL.Query().Get(legacySession), who.owner)
	if s != nil {
		defer h.sessions.release(s)
	}
	if s == nil || s.legacy.Load() == nil { // unknown, or opened by /mcp
		refuse(http.StatusNotFound, "session not found or expired; open /sse again").write(w)
		return
	}
	stream := s.legacy.Load()
	body, no := h.readBody(w, r, who.owner)
	if no != nil {
		no.write(w)
		return
	}
	if h.isDraining() && needsAnswer(body) {
		h.bodyBytes.release(who.owner, len(body))
		h.draining().write(w)
		return
	}
	if stream.HasWaiters() && needsAnswer(body) {
		h.bodyBytes.release(who.owner, len(body))
		refuse(
			http.StatusServiceUnavailable,
			"busy: this client has answers it does not read; read the /sse stream, then try again",
		).write(w)
		return
	}
	work := s.conn.Accept(server.WithRoots(s.conn.Context(), who.roots), body, func(m []byte, last func()) error {
		return stream.SendDetached(eventOf(m), last)
	})
	if work == nil {
		h.bodyBytes.release(who.owner, len(body))
	} else {
		h.run(func() {
			defer h.bodyBytes.release(who.owner, len(body))
			work()
		})
	}
	// Accept may have waited for a full stream; writeAccepted extends the deadline.
	newExchange(w, h.write, true, true).writeAccepted()
}

// needsAnswer reports whether a message gets an answer: it is a request, a batch or malformed.
func needsAnswer(message []byte) bool {
	if jsonrpc.IsBatch(message) {
		return true
	}
	f, fault := jsonrpc.Parse(message)
	return fault != nil || f.ID != nil && !f.IsResponse
}
