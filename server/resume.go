package server

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// This file continues a session of the sessions era in another process than the one that answered initialize. The
// transport carries the handshake there. What a session has gathered since stays behind: calls that run, subscriptions,
// the log level, and open requests to the client.

// replicaMetaKey is the member of _meta that names the replica which answered.
const replicaMetaKey = metaPrefix + "replica"

// Handshake is what a client and the server agreed on in initialize: all that another process needs to continue the
// session.
type Handshake struct {
	Protocol     string          `json:"p"`
	Name         string          `json:"n,omitempty"` // of the client, as is Version
	Version      string          `json:"v,omitempty"`
	Capabilities json.RawMessage `json:"c,omitempty"` // as the client wrote them
}

// ConnectAs is [Server.Connect] for a session with a known ID, which must be unique and unguessable.
func (s *Server) ConnectAs(ctx context.Context, id string) *Conn {
	c := &Conn{
		server: s, id: id, calls: map[string]*call{}, changed: make(chan struct{}),
		awaiting: map[string]chan<- jsonrpc.Frame{},
		account:  funnel.Session{ID: id, Owner: observations.Local},
	}
	if s.options.SessionKey != nil { // so that no two processes ask the client under one ID
		c.requests = rand.Int64N(1 << 40)
	}
	c.roots.conn = c
	c.agreed.Store(&handshake{})
	c.logLevel.Store(new(mcp.LoggingLevelError)) // MCP leaves the level before logging/setLevel to the server
	c.ctx, c.end = context.WithCancelCause(ctx)
	return c
}

// Handshake returns what initialize negotiated. Its Protocol is "" before initialize.
func (c *Conn) Handshake() Handshake {
	h := c.agreed.Load()
	out := Handshake{Protocol: h.protocol, Name: h.client.Name, Version: h.client.Version}
	var raw bytes.Buffer
	if json.Compact(&raw, h.raw) == nil && raw.String() != "{}" {
		out.Capabilities = raw.Bytes()
	}
	return out
}

// WithoutExtensions returns the handshake without the capabilities that MCP does not define. Only upstream servers and
// MCP Apps need those.
func (h Handshake) WithoutExtensions() Handshake {
	var known mcp.ClientCapabilities
	if json.Unmarshal(h.Capabilities, &known) == nil {
		known.Extensions, known.Experimental = nil, nil
		h.Capabilities, _ = json.Marshal(known) // plain members
	}
	return h
}

// Resume makes c the connection of a client that sent initialize to another process. The client gets the notice as a
// log message with its first request here. Resume must be called before the first message is accepted.
func (c *Conn) Resume(h Handshake, notice string) error {
	if h.Capabilities == nil {
		h.Capabilities = json.RawMessage("{}")
	}
	agreed := handshake{
		protocol: h.Protocol, raw: h.Capabilities, client: mcp.Implementation{Name: h.Name, Version: h.Version},
	}
	if err := json.Unmarshal(h.Capabilities, &agreed.capabilities); err != nil {
		return err
	}
	c.notice.Store(&notice)
	c.agree(&agreed)
	return nil
}

// agree stores the outcome of initialize.
func (c *Conn) agree(h *handshake) {
	c.agreed.Store(h)
	if c.roots.declared() {
		c.roots.mustQuery() // for a call that comes before notifications/initialized
	}
}

// SetReady records that the client is initialized. It does what notifications/initialized does, which may have reached
// another process, and nothing if the client is ready.
func (c *Conn) SetReady() {
	if c.Initialized() && c.ready.CompareAndSwap(false, true) {
		c.updateCounts(func(*Conn) {}) // wakes those that wait for it
		c.startNotifications()
		c.hearUpstreams()
		c.roots.changed()
	}
}

// sendNotice sends the notice of Resume, once, on the stream of a call, whatever the log level: the client's choice
// stayed in the other process.
func (k *call) sendNotice() {
	if notice := k.conn.notice.Swap(nil); notice != nil {
		jsonrpc.NewNotifier(k.send, nil, mcp.LoggingLevelWarning, false).Log(mcp.LoggingLevelWarning, "server", *notice)
	}
}

// requestID returns the ID of the n-th request to the client. With several replicas it names this one.
func (c *Conn) requestID(n string) string {
	if c.server.options.SessionKey == nil {
		return "funnel-" + n
	}
	return "funnel-" + n + "@" + c.server.options.Replica
}

// Misdirected returns the name of the replica that waits for a response; "" if it is this one, or unknown.
func (s *Server) Misdirected(f jsonrpc.Frame) string {
	var id string
	if !f.IsResponse || s.options.SessionKey == nil || json.Unmarshal(f.ID, &id) != nil {
		return ""
	}
	if _, name, named := strings.Cut(id, "@"); named && name != s.options.Replica {
		return name
	}
	return ""
}
