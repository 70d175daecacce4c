package server

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// session is what a client of the sessions era has said of itself, and for how long it lasts: as long as
// its connection.
type session struct {
	id string

	mu    sync.Mutex
	hello hello
	level mcp.LoggingLevel
}

// hello is what initialize settles.
type hello struct {
	protocol string // negotiated; "" before initialize
	client   mcp.Implementation
	can      mcp.ClientCapabilities
}

// newSession starts at level error: MCP leaves the level before logging/setLevel to the server.
func newSession(id string) *session {
	return &session{id: id, level: mcp.LoggingLevelError}
}

func (s *session) initialize(h hello) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hello = h
}

// said is what the client said at initialize; nothing before it.
func (s *session) said() hello {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hello
}

func (s *session) initialized() bool { return s.said().protocol != "" }

// setLevel has log messages below that level not sent.
func (s *session) setLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

func (s *session) logLevel() mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}
