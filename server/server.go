// Package server is the only room that speaks MCP to the client.
//
// It runs no tool itself (the funnel does), and decides nothing about what is shown.
//
//	             stdio.go (later: streamable HTTP, SSE)
//	                 │ one message, and where its answers go
//	frames.go ◄── Conn.accept ──► ping, cancel, initialize: at once
//	                 │ calls.go: gate, in flight, deadline
//	              methods.go ──► tools.go, resources.go, prompts.go, completion.go
//	                 │                │ notify.go: progress, log
//	                 ▼                ▼
//	               answer           client
//
// mcp-go's types are the knowledge of the protocol: versions, names, shapes of results. Its server is not
// used: how messages are read, served and answered, ids, keys, order, limits and cancellation are ours.
package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Defaults of [Options].
const (
	DefaultMaxMessage   = 16 << 20
	DefaultMaxCalls     = 64
	DefaultCallTimeout  = 50 * time.Second // a common client gives up at 60
	DefaultEOFGrace     = 30 * time.Second
	DefaultWriteTimeout = 60 * time.Second // a client that reads nothing for as long has given up its calls
	DefaultAskTimeout   = 20 * time.Second
)

// Options of a server. Zero values mean the defaults.
type Options struct {
	Funnel  *funnel.Funnel
	Store   *observations.Store                // nil: no observations are offered as resources
	Tools   []tools.Tool                       // in the order in which they are offered
	Sources func(funnel.Session) tools.Sources // what a session may name
	Version string                             // of the program; "dev" by default
	Log     *slog.Logger                       // nil: none
	Mask    *secrets.Masker                    // of resources, prompts and faults; nil: nothing is masked
	Extra   Extra                              // what is offered beside all that

	MaxMessage   int64         // bytes of one message
	MaxCalls     int           // calls running at once; more are answered "busy"
	CallTimeout  time.Duration // of one call
	EOFGrace     time.Duration // how long calls in flight may take after the input has ended
	WriteTimeout time.Duration // how long the client may read nothing while something waits for it
	IgnoreRoots  bool          // the client's roots do not narrow what a session may name
	AskTimeout   time.Duration // how long a client of the sessions era may take to answer a question
}

// Server offers tools, observations and prompts. It is safe for concurrent use.
type Server struct {
	self    mcp.Implementation
	run     func(context.Context, funnel.Request) (funnel.Answer, error)
	store   *observations.Store
	sources func(funnel.Session) tools.Sources
	log     *slog.Logger
	mask    *secrets.Masker
	offered Extra    // and what the server offers of its own, before it
	names   []string // of the tools, as offered
	gate    gate
	first   *Conn // of HandleMessage
	seal    seal  // of request states
	kept    watch

	clientRoots bool                    // those of a client narrow what it may name
	listens     shares                  // open subscriptions/listen, of all connections
	metrics     atomic.Pointer[metrics] // of the newest face to HTTP; nil: none

	maxMessage                                   int64
	timeout, eofGrace, writeDeadline, askTimeout time.Duration
	rootsAgain                                   time.Duration // the constant
}

// New fails where something needed is missing, or a tool is not fit to be listed.
func New(o Options) (*Server, error) {
	if o.Funnel == nil || o.Sources == nil {
		return nil, errors.New("server: a funnel and sources are needed")
	}
	s := &Server{
		store: o.Store, sources: o.Sources, log: o.Log, mask: o.Mask, seal: newSeal(), clientRoots: !o.IgnoreRoots,
		maxMessage: orDefault(o.MaxMessage, DefaultMaxMessage), timeout: orDefault(o.CallTimeout, DefaultCallTimeout),
		eofGrace: orDefault(o.EOFGrace, DefaultEOFGrace), writeDeadline: orDefault(o.WriteTimeout, DefaultWriteTimeout),
		askTimeout: orDefault(o.AskTimeout, DefaultAskTimeout), rootsAgain: rootsAgain,
	}
	s.run = s.watched(o.Funnel.Call)
	// The messages of all calls together may take four times what one may.
	s.gate.maxCalls, s.gate.maxBytes = orDefault(o.MaxCalls, DefaultMaxCalls), 4*s.maxMessage
	s.listens.all, s.listens.each = maxAllListens, maxAllListens
	s.kept = watch{store: o.Store, each: lookEach, watchers: map[*watcher]bool{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	s.self = mcp.Implementation{Name: "mcp-funnel", Version: o.Version, Title: "mcp-funnel"}
	if err := s.addTools(o.Tools); err != nil {
		return nil, err
	}
	s.offered.Tools = append(s.offered.Tools, o.Extra.Tools...)
	s.offered.Resources = o.Extra.Resources
	s.offered.Templates = append(s.templates(), o.Extra.Templates...)
	s.offered.Prompts = o.Extra.Prompts
	s.first = s.Connect(context.Background())
	return s, nil
}

func orDefault[T int | int64 | time.Duration](v, or T) T {
	if v <= 0 {
		return or
	}
	return v
}

// Connect makes room for one client, until ctx ends.
func (s *Server) Connect(ctx context.Context) *Conn {
	id := rand.Text()
	c := &Conn{
		server: s, session: newSession(id), calls: map[string]*call{}, changed: make(chan struct{}),
		asked: map[string]chan<- frame{},
		who:   funnel.Session{ID: id, Owner: observations.Local},
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.own.deliver = c.tellChanges
	return c
}

// Handle takes one message, sends what the call tells while it works and then its answer, and returns.
func (c *Conn) Handle(ctx context.Context, message []byte, send Send) {
	if work := c.accept(ctx, message, send); work != nil {
		work()
	}
}

// HandleMessage takes one message of a client of its own and returns the answer, a [json.RawMessage],
// or nil where none is due. Notifications are dropped: [Conn.Handle] has them.
func (s *Server) HandleMessage(ctx context.Context, message json.RawMessage) any {
	var got any
	s.first.Handle(ctx, message, func(m []byte, answer func()) error {
		if answer != nil {
			got = json.RawMessage(bytes.TrimSpace(m))
		}
		return nil
	})
	return got
}

// accept takes one message and never waits for work: what cannot be done at once is returned, to
// be run by a goroutine of its own. It must be called in the order in which messages came in.
func (c *Conn) accept(ctx context.Context, message []byte, send Send) (work func()) {
	if isBatch(message) {
		return c.acceptBatch(ctx, message, send)
	}
	return c.acceptOne(ctx, message, send)
}

func (c *Conn) acceptOne(ctx context.Context, message []byte, send Send) (work func()) {
	f, fault := parse(message)
	if fault != nil {
		send.answer(f.id, nil, fault)
		return nil
	}
	work, _ = c.acceptFrame(ctx, f, send)
	return work
}

// acceptFrame goes on where the message has been read. k is the call that work is about, if it is about one.
func (c *Conn) acceptFrame(ctx context.Context, f frame, send Send) (work func(), k *call) {
	if f.answer {
		c.answered(f)
		return nil, nil
	}
	if f.id == nil {
		c.notice(f)
		return nil, nil
	}
	if c.inFlight(f.key) {
		// Not under the id: its holder would take this for the answer to the first.
		send.answer(nil, nil, faultf(mcp.INVALID_REQUEST,
			"the id %s is in flight; the second request under it was not run", echo(string(f.id))))
		return nil, nil
	}
	if c.atOnce(ctx, f, send) {
		return nil, nil
	}
	if f.modern() && f.method == string(mcp.MethodSubscriptionsListen) {
		return c.startListening(ctx, f, send)
	}
	ctx, k, fault := c.start(ctx, f, send)
	if fault != nil {
		c.newCall(f, send).notes.log(mcp.LoggingLevelWarning, "server", fault.Message)
		result, fault := refused(f, fault)
		send.answer(f.id, result, fault)
		return nil, nil
	}
	return func() { k.run(ctx) }, k
}

// atOnce answers what must neither queue nor be overtaken: ping, and what later messages depend on.
func (c *Conn) atOnce(ctx context.Context, f frame, send Send) bool {
	now := func() {
		result, fault := c.server.dispatch(ctx, c.newCall(f, send))
		send.answer(f.id, result, fault)
	}
	switch method := mcp.MCPMethod(f.method); {
	case method == mcp.MethodPing && !f.modern():
		send.answer(f.id, struct{}{}, nil)
	case method == mcp.MethodInitialize, method == mcp.MethodServerDiscover:
		now()
	case !f.modern() && !c.session.initialized():
		send.answer(f.id, nil, faultf(mcp.INVALID_REQUEST,
			"%s before initialize; send initialize first, or declare protocol version %s in _meta",
			echo(f.method), mcp.ProtocolVersion20260728))
	case method == mcp.MethodSetLogLevel:
		now()
	default:
		return false
	}
	return true
}

// notice takes a notification; those that change nothing here are dropped.
func (c *Conn) notice(f frame) {
	switch mcp.MCPMethod(f.method) {
	case mcp.MethodNotificationCancelled:
		if _, key, fault := (&envelope{rawID: f.params["requestId"]}).id(); fault == nil && key != "" {
			c.cancelID(key)
		}
	case mcp.MethodNotificationInitialized:
		if c.session.initialized() && c.ready.CompareAndSwap(false, true) {
			c.watchOwn()
			c.rootsChanged()
		}
	case mcp.MethodNotificationRootsListChanged:
		if c.ready.Load() {
			c.rootsChanged()
		}
	}
}

// response is one answer as it goes over the wire, with its newline. No fault leaves with hidden
// characters in its message: some echo what the client sent.
func response(id json.RawMessage, result any, fault *Fault) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if fault != nil {
		shown := *fault // faults may be shared
		shown.Message = content.Visible(shown.Message, false)
		fault = &shown
	}
	type envelope struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *Fault          `json:"error,omitempty"`
	}
	message, err := encode(envelope{mcp.JSONRPC_VERSION, id, plain(result), fault})
	if err != nil {
		fault = faultf(mcp.INTERNAL_ERROR, "the answer could not be encoded: %v", err)
		message, _ = encode(envelope{mcp.JSONRPC_VERSION, id, nil, fault})
	}
	return message
}

// visible is a text of others fit to be shown: its secrets masked, its hidden characters visible.
func (s *Server) visible(text string, json bool) string {
	text, _ = s.mask.String(text)
	return content.Visible(text, json)
}

// plain keeps a tool's answer, and what is told beside it, from being encoded twice, and its text from being escaped for HTML.
func plain(result any) any {
	type bare mcp.CallToolResult // without its MarshalJSON
	r, ok := result.(*mcp.CallToolResult)
	switch {
	case ok && r.NeedsInput(): // it has no content, not even none
		return mcp.InputRequiredResult{Result: r.Result, MultiRoundTripResult: r.MultiRoundTripResult}
	case ok && r.RawStructuredContent == nil && r.Meta != nil && r.Meta.ProgressToken == nil && len(r.Meta.AdditionalFields) > 0:
		return struct {
			Meta map[string]any `json:"_meta"`
			*bare
		}{r.Meta.AdditionalFields, (*bare)(r)}
	case ok && r.RawStructuredContent == nil:
		return (*bare)(r)
	}
	return result
}

// encode ends with a newline and holds no other.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b.Bytes(), nil
}
