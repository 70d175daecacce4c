// Package server implements MCP: methods, tools, resources, prompts, completion, and the state that each client has
// negotiated.
//
//	server/stdio, server/httpserver
//	       │ one message and a function that sends answers
//	   accept.go ──► ping, cancel, initialize: answered at once
//	       │ calls.go: limits, calls in flight, deadline
//	   methods.go ──► tools.go, resources.go, prompts.go, completion.go
//
// A transport creates a [Conn] for each client and passes its messages to [Conn.Accept]; other methods of Conn end a
// connection gracefully. Package system/jsonrpc parses messages and encodes answers.
//
// It uses mcp-go's types for protocol versions, names and results, but not mcp-go's server.
package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server/callstate"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// Defaults of [Options].
const (
	DefaultMaxMessage   = 16 << 20
	DefaultMaxCalls     = 64
	DefaultCallTimeout  = 50 * time.Second // a common client gives up at 60
	DefaultEOFGrace     = 30 * time.Second
	DefaultWriteTimeout = 60 * time.Second // if a client reads nothing for this long, it counts as disconnected
	DefaultAskTimeout   = 10 * time.Minute // a person answers
)

// Funnel runs one call of a tool; a [funnel.Funnel] does.
type Funnel interface {
	Call(ctx context.Context, r funnel.Request) (funnel.Answer, error)
	// FitsPage reports whether a text of that size may be shown whole.
	FitsPage(tokens, chars int64) bool
	// Show answers with a text of the server's own.
	Show(r funnel.Request, text string) funnel.Answer
}

// Options configures a server. A zero value means the default.
type Options struct {
	Funnel    Funnel
	Store     *observations.Store             // nil: no observations are offered as resources
	Trace     trace.Store                     // whose events are among the metrics; nil: none are
	Tools     []tools.Tool                    // in the order of tools/list
	Sources   func(funnel.Session) source.Set // the sources that a session may name
	Version   string                          // of the program; "dev" by default
	Log       *slog.Logger                    // nil: nothing is logged
	Mask      *secrets.Masker                 // masks resources, prompts and faults; nil: nothing is masked
	Extra     Extra                           // additional tools, resources and prompts
	App       App                             // pages for people in clients that render MCP Apps; nil: none
	Upstreams *upstream.Group                 // upstream servers that are offered too; nil: none
	Counter   *tokens.Counter                 // counts the tokens of a prompt's message; nil: for o200k_base
	Window    int                             // context window in tokens; 0: unknown

	// SessionOf returns the session that a call of this owner belongs to, by its _meta; "": that of the connection. nil:
	// always that.
	SessionOf func(owner string, meta map[string]any) string
	// PullUsage returns what a session's client has written down of its usage; nil if nothing is known. nil: none.
	PullUsage func(session string) *usage.Usage

	MaxMessage   int64         // bytes of one message
	MaxCalls     int           // concurrent calls; further calls are answered "busy"
	Rate         Rate          // of one identity
	OwnerCalls   int           // concurrent calls of one identity; 0: no limit
	CallTimeout  time.Duration // of one call
	EOFGrace     time.Duration // how long calls in flight may take after the input has ended
	WriteTimeout time.Duration // how long the client may read nothing while a message waits
	IgnoreRoots  bool          // the client's roots do not narrow the sources of a session
	AskTimeout   time.Duration // how long a client of the sessions era may take to answer a question

	Replica string // the name of this process among several that serve the same clients; "": not named
	// SessionKey is at least 32 random bytes that all replicas share, so that each continues what another has begun: sessions
	// over HTTP, and calls that ask in the stateless era. nil: this process alone does.
	SessionKey []byte
}

// Server offers tools, observations and prompts. It is safe for concurrent use.
type Server struct {
	options   Options // with defaults filled in
	self      mcp.Implementation
	run       func(context.Context, funnel.Request) (funnel.Answer, error)
	offers    Extra    // all that the server lists: its own tools and templates, then Options.Extra
	names     []string // of Options.Tools, in their order
	callLimit jsonrpc.CallLimiter

	upstreamLimit jsonrpc.CallLimiter // of tools of upstream servers: one that hangs must not hold our own
	identityLimit identityLimits
	sealer        callstate.Sealer // of request states
	storeWatch    storeWatcher

	listens   jsonrpc.OwnerLimiter            // open subscriptions/listen of all connections
	observer  atomic.Pointer[CallObserver]    // nil: none
	overLimit atomic.Pointer[func(OverLimit)] // nil: none

	upstreamsMu sync.Mutex
	upstreams   map[string]*upstreams // by owner and session

	lateRoots time.Duration // the constant lateRoots; tests set another value
}

// Options returns the options of the server, with defaults filled in.
func (s *Server) Options() Options { return s.options }

// RunningCalls returns the number of running calls.
func (s *Server) RunningCalls() int { return s.callLimit.Running() }

// CallObserver is called after each tool call with its duration. The answer of a cancelled call has no receipt.
type CallObserver func(tool string, answer funnel.Answer, took time.Duration)

// ObserveCalls sets the observer of calls and replaces the previous one.
func (s *Server) ObserveCalls(o CallObserver) { s.observer.Store(&o) }

// ObserveOverLimit sets what is called for each call that is not started because its identity is over a limit.
func (s *Server) ObserveOverLimit(observe func(OverLimit)) { s.overLimit.Store(&observe) }

// sanitize masks the secrets of a text and escapes its hidden characters.
func (s *Server) sanitize(text string, json bool) string {
	text, _ = s.options.Mask.String(text)
	return content.Visible(text, json)
}
