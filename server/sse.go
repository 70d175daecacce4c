package server

import (
	"net/http"
)

// The transport of protocol 2024-11-05: the client opens a stream, learns from its first event where to
// post, and finds every answer on the stream. It is offered only where asked for.

// legacySession is the parameter that names the stream a message belongs to. It opens nothing without the token.
const legacySession = "sessionId"

func (h *web) serveSSE(w http.ResponseWriter, r *http.Request, who caller) {
	if _, asStream := accepts(r); !asStream {
		refusef(http.StatusNotAcceptable, "the stream is text/event-stream; name it in Accept").write(w)
		return
	}
	conn := h.server.Connect(h.ctx)
	defer conn.end(errCancelled) // with the stream go its calls: nobody could read their answers
	conn.who, _ = accounted(who.owner, conn, frame{})
	s, no := h.sessions.add(who.owner, conn)
	if no != nil {
		no.write(w)
		return
	}
	defer h.sessions.drop(s, errDeleted)
	h.stream(r.Context(), w, s, func(out *outbox) func() {
		out.keep = func(n int) bool { return h.unread.take(who.owner, 0, n) }
		out.letGo = func(n int) { h.unread.give(who.owner, n) }
		h.sessions.carry(s, &carrier{out})
		_ = out.send([]byte("event: endpoint\ndata: /message?"+legacySession+"="+s.id+"\n\n"), nil)
		return conn.Listen(func(m []byte, last func()) error { return out.send(eventOf(m), last) })
	})
}

func (h *web) serveMessage(w http.ResponseWriter, r *http.Request, who caller) {
	s := h.sessions.use(r.URL.Query().Get(legacySession), who.owner)
	if s == nil {
		refusef(http.StatusNotFound, "there is no such session (any more); open /sse again").write(w)
		return
	}
	defer h.sessions.release(s)
	stream := h.sessions.carried(s)
	if stream == nil { // one of /mcp
		refusef(http.StatusNotFound, "there is no such session (any more); open /sse again").write(w)
		return
	}
	body, no := h.read(w, r, who.owner)
	if no != nil {
		no.write(w)
		return
	}
	if stream.out.behind() && asks(body) {
		h.bodies.give(who.owner, len(body))
		refusef(http.StatusServiceUnavailable, "busy: this client has answers it does not read; read the stream of /sse, then try again").write(w)
		return
	}
	work := s.conn.accept(s.conn.ctx, body, stream.send)
	if work == nil {
		h.bodies.give(who.owner, len(body))
	} else {
		h.works.Add(1)
		go func() {
			defer h.works.Done()
			defer h.bodies.give(who.owner, len(body))
			work()
		}()
	}
	newExchange(w, h.write, true, true).accepted() // a full stream may have kept us
}

// carrier is the stream on which a legacy client gets its answers.
type carrier struct{ out *outbox }

func (c *carrier) send(m []byte, last func()) error { return c.out.hand(eventOf(m), last) }

// asks says that a message has to be answered.
func asks(message []byte) bool {
	if isBatch(message) {
		return true
	}
	f, fault := parse(message)
	return fault != nil || f.id != nil && !f.answer
}
