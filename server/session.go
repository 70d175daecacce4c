package server

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// session is what mcp-go remembers of a client: of a connection in the era of initialize, of a
// single request in the stateless era.
type session struct {
	id    string
	notes chan mcp.JSONRPCNotification // what mcp-go itself wants to tell; emptied before each answer
	conn  *Conn                        // nil in the stateless era, where subscriptions are a request's own

	mu           sync.Mutex
	initialized  bool
	protocol     string
	level        mcp.LoggingLevel
	client       mcp.Implementation
	capabilities mcp.ClientCapabilities
}

// newSession starts at level error: MCP leaves the level before logging/setLevel to the server.
func newSession(id string) *session {
	return &session{id: id, notes: make(chan mcp.JSONRPCNotification, 8), level: mcp.LoggingLevelError}
}

func (s *session) SessionID() string                                   { return s.id }
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

func (s *session) Initialize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initialized = true
}

func (s *session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

func (s *session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.protocol = version
}

func (s *session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protocol
}

func (s *session) SetLogLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

func (s *session) GetLogLevel() mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

func (s *session) SetClientInfo(client mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

func (s *session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

func (s *session) SetClientCapabilities(capabilities mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capabilities = capabilities
}

func (s *session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capabilities
}

// SubscribeToResourceErr is mcp-go's way to a subscription of the sessions era.
func (s *session) SubscribeToResourceErr(uri string) error {
	if s.conn == nil {
		return nil
	}
	return s.conn.subscribe(uri)
}

func (s *session) SubscribeToResource(uri string) { _ = s.SubscribeToResourceErr(uri) }

func (s *session) UnsubscribeFromResource(uri string) {
	if id, err := observations.ParseID(uri); err == nil && s.conn != nil {
		s.conn.own.unsubscribe(id)
	}
}

// SubscribedResources is asked for by nobody: what is subscribed is told by [watch].
func (s *session) SubscribedResources() []string { return nil }

func (s *session) IsSubscribedToResource(string) bool { return false }
