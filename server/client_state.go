package server

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// clientState holds what a client of the sessions era negotiated. It lasts as long as the connection.
type clientState struct {
	id string

	mu     sync.Mutex
	agreed handshake
	level  mcp.LoggingLevel
}

// handshake is the result of initialize.
type handshake struct {
	protocol     string // negotiated; "" before initialize
	client       mcp.Implementation
	capabilities mcp.ClientCapabilities
}

// newSession returns a state with log level error: MCP leaves the level before logging/setLevel to the server.
func newSession(id string) *clientState {
	return &clientState{id: id, level: mcp.LoggingLevelError}
}

func (s *clientState) initialize(h handshake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agreed = h
}

// handshake returns what initialize negotiated; the zero value before initialize.
func (s *clientState) handshake() handshake {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agreed
}

func (s *clientState) initialized() bool { return s.handshake().protocol != "" }

// setLevel sets the lowest level of log messages that the client gets.
func (s *clientState) setLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

func (s *clientState) logLevel() mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}
