package httpserver

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Relay carries messages of sessions between replicas: a balancer sends a cancellation, an answer or the GET stream of a
// session to any of them.
type Relay interface {
	// Publish sends a message to all replicas; an error says that it is too long, or that they cannot be reached.
	Publish(message []byte) error
	// Hear calls heard with what others publish, and may do so with what this replica does.
	Hear(heard func(message []byte)) (stop func())
}

// Directions of a relayed message.
const (
	toReplica = "in"  // from the client
	toClient  = "out" // for the GET stream
	deleted   = "end" // the client ended its session
)

// relayed is a message of a session with a sealed ID.
type relayed struct {
	From      string          `json:"f"` // process
	Session   string          `json:"s"`
	Owner     string          `json:"o"`
	Direction string          `json:"d"`
	Message   json.RawMessage `json:"m,omitempty"`
}

var errNotRelayed = errors.New("no other replica is told")

// publish tells the other replicas of a message.
func (h *httpServer) publish(s *httpSession, direction string, message []byte) error {
	if h.relay == nil || s.sealed == nil {
		return errNotRelayed
	}
	b, err := json.Marshal(relayed{h.process, s.id, s.owner, direction, message})
	if err == nil {
		err = h.relay.Publish(b)
	}
	if err != nil {
		h.log.Warn("a message for other replicas was lost", "direction", direction, "error", err)
	}
	return err
}

// relayPost publishes a client's message that another replica may wait for; ok is false if this one must serve it.
func (h *httpServer) relayPost(s *httpSession, f jsonrpc.Frame, body []byte) (ok bool) {
	switch {
	case f.IsResponse:
		return h.server.Misdirected(f) != "" && h.publish(s, toReplica, body) == nil
	case f.ID == nil && f.Method != string(mcp.MethodNotificationInitialized): // a call of it may run at each
		_ = h.publish(s, toReplica, body)
	}
	return false
}

// relayOwn has notifications that belong to no call reach the GET stream of the session, wherever it is open. Requests
// wait for the next call instead, and each replica finds changes of the store itself.
func (h *httpServer) relayOwn(s *httpSession) {
	if h.relay == nil || s.sealed == nil {
		return
	}
	s.conn.Listen(func(message []byte, _ func()) error {
		f, fault := jsonrpc.Parse(message)
		switch {
		case fault != nil || f.ID != nil:
			return server.ErrNoStream
		case f.Method == string(mcp.MethodNotificationResourcesListChanged):
			return nil
		}
		return h.publish(s, toClient, []byte(strings.TrimSpace(string(message))))
	})
}

// heard serves what another replica has published.
func (h *httpServer) heard(message []byte) {
	var m relayed
	if json.Unmarshal(message, &m) != nil || m.From == h.process {
		return
	}
	if m.Direction == deleted {
		if was, ok := h.sealer.open(m.Owner, m.Session); ok {
			h.sessions.forgetDeleted(m.Owner, m.Session, was)
		}
		return
	}
	s := h.sessions.use(m.Session, m.Owner)
	if s == nil {
		return
	}
	defer h.sessions.release(s)
	switch m.Direction {
	case toReplica:
		if f, fault := jsonrpc.Parse(m.Message); fault == nil && (f.IsResponse || f.ID == nil) {
			_, _, _ = s.conn.TryFrame(h.ctx, f, func([]byte, func()) error { return nil })
		}
	case toClient:
		if out := s.stream.Load(); out != nil {
			// Not Send, which waits: a client that does not read must not keep the messages of others waiting.
			_ = out.SendDetached(eventOf(append(m.Message, '\n')), nil)
		}
	}
}
