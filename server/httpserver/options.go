package httpserver

import (
	"time"

	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// Defaults of [Options].
const (
	DefaultConnections = 1024
	DefaultSessions    = 1024
	DefaultIdle        = 12 * time.Hour
)

const (
	// headerTimeout bounds the time to send the head of a request.
	headerTimeout = 10 * time.Second
	// bodyTimeout bounds the time to send the body.
	bodyTimeout = 60 * time.Second
	// bodyPause is the longest pause within a body.
	bodyPause = 10 * time.Second
	// minBodies is how many bodies of one identity may always arrive at once, however low the limit of connections.
	minBodies = 16
	// keepAliveTimeout is how long an idle connection is kept for its next request.
	keepAliveTimeout = 2 * time.Minute
	// maxHeader bounds the head of a request, in bytes. net/http allows 4096 bytes (headerSlack) over MaxHeaderBytes.
	maxHeader   = 16 << 10
	headerSlack = 4 << 10
	// streamPing is the interval of comments on a stream: they keep proxies from closing it and detect a client that
	// has left.
	streamPing = 25 * time.Second
)

// Options set who may connect over HTTP, and the limits. A zero limit means its default.
type Options struct {
	Identities map[string]string // bearer token → owner of observations; only hashes of the tokens are kept
	NoToken    bool              // treats every caller as observations.Local; for fixture servers
	SSE        bool              // also serves /sse and /message, of protocol 2024-11-05
	// Hosts are allowed in the Host header besides loopback names and the address itself, with or without a port.
	Hosts []string
	// OAuth checks access tokens, besides the tokens of Identities; nil: there are none.
	OAuth *oauth.Verifier
	// Links are the links that are served; nil: none. They need a server with a store.
	Links *links.Links
	// View are pages for people below [viewer.Base]; nil: none are served. ViewOnly serves nothing else, and needs no token.
	View     *viewer.Viewer
	ViewOnly bool
	Origins  []string // web origins allowed besides the server's own, as browsers send them

	Connections int           // open at once
	Sessions    int           // open at once
	Idle        time.Duration // an unused session ends after this time

	// Relay carries messages of sessions between replicas that share [server.Options.SessionKey]; nil: a message that
	// reaches another replica than the one it is for is refused or lost.
	Relay Relay

	// Draining, when closed, makes [Serve] drain: /readyz turns to 503, what is new is refused, and Serve returns once no call
	// runs, after 2 s at least. nil: it never drains.
	Draining <-chan struct{}
}
