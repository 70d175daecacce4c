// Package upstream offers the tools of other MCP servers. What they answer goes through the funnel: a small result is
// passed on as it was written, a large one is stored.
//
//	Server ── record.go: what is approved ── system/mcpclient: the process
//	  ├─ list.go: its tools, as it lists them
//	  └─ result.go: a result of a call, as output of a tool
package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Toolset is the name of the toolset of other servers' tools.
const Toolset = "upstream"

// The protocols that a server is asked for: of the era with sessions, and of the stateless one, whose requests declare
// their client in members of _meta with this prefix.
const (
	sessionsProtocol  = "2025-11-25"
	statelessProtocol = "2026-07-28"
	metaPrefix        = "io.modelcontextprotocol/"
)

// Times of a start.
const (
	discoverTime = 3 * time.Second  // for server/discover; then initialize goes to the same process
	startTime    = 20 * time.Second // in all
)

// Options configures a server.
type Options struct {
	Command mcpclient.Command
	Remote  *mcpclient.Endpoint // instead of Command
	Version string              // of this program
	Records *Records            // nil: nothing is remembered, and all tools are trusted
	Log     *slog.Logger        // nil: nothing is logged
	JQ      tools.Tool          // runs the filters of references
	Literal []string            // tools whose arguments are no references
	Observe bool                // results are passed on whatever their size; the schema of results is listed
}

// Server is another MCP server. It is started by its first use, and again after it has ended.
type Server struct {
	options Options

	mu      sync.Mutex
	process connection
	record  *Record
	failed  int // starts in a row
	next    time.Time
	closed  bool
}

// connection is a running server: a process, or a session over HTTP.
type connection interface {
	Call(
		ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
	) (json.RawMessage, error)
	Notify(method string, params json.RawMessage) error
	Ended() <-chan struct{}
	Close()
}

// name returns the words of the server's command, or its URL without a query, which may hold a key.
func (o Options) name() []string {
	if o.Remote != nil {
		url, _, _ := strings.Cut(o.Remote.URL, "?")
		return []string{url}
	}
	return o.Command.Args
}

// key names the record of the server.
func (o Options) key() string {
	if o.Remote != nil {
		return Key([]string{o.Remote.URL})
	}
	return Key(o.Command.Args)
}

// Name returns the server's command line, or its URL.
func (s *Server) Name() string { return strings.Join(s.options.name(), " ") }

// New returns a server that is not started.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{options: o, record: &Record{V: 1, Command: o.name()}}
}

// Close ends the server.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.process != nil {
		s.process.Close()
	}
}

// request sends a request to the running server, which it starts if necessary.
func (s *Server) request(
	ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage),
) (json.RawMessage, error) {
	p, modern, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	if modern {
		if params, err = s.declared(params); err != nil {
			return nil, err
		}
	}
	return p.Call(ctx, method, params, progress)
}

// longest is the longest pause before a server is started again.
const longest = time.Minute

// running returns the process, and starts one if there is none. After starts that failed it waits longer each time;
// until then calls fail at once.
func (s *Server) running(ctx context.Context) (_ connection, modern bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, mcpclient.ErrEnded
	}
	if s.process != nil {
		select {
		case <-s.process.Ended():
			s.options.Log.Warn("an upstream server has ended, and is started again", "command", s.options.name()[0])
			s.process.Close()
			s.process = nil
		default:
			return s.process, s.record.Modern, nil
		}
	}
	if wait := time.Until(s.next); wait > 0 {
		return nil, false, fmt.Errorf("the server of this tool does not start; it is tried again in %s", wait.Round(time.Second))
	}
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	if s.process, err = s.connect(ctx); err == nil {
		err = s.relist(ctx)
	}
	if err != nil {
		if s.process != nil {
			s.process.Close()
			s.process = nil
		}
		s.failed++
		s.next = time.Now().Add(min(longest, 250*time.Millisecond<<min(s.failed, 10)))
		return nil, false, fmt.Errorf("the server of this tool cannot be started: %w", err)
	}
	s.failed = 0
	return s.process, s.record.Modern, nil
}

// connect starts a process and finds out which era of the protocol it speaks, unless that is known. Many servers of the
// older one end, or answer with an error, when they are asked.
func (s *Server) connect(ctx context.Context) (connection, error) {
	p, err := s.start()
	if err != nil {
		return nil, err
	}
	if s.options.Remote != nil || s.record.known() && !s.record.Modern { // over HTTP the stateless era is not spoken yet
		return s.initialized(ctx, p)
	}
	params, err := s.declared(json.RawMessage("{}"))
	if err != nil {
		p.Close()
		return nil, err
	}
	asking, stop := context.WithTimeout(ctx, discoverTime)
	defer stop()
	_, err = p.Call(asking, "server/discover", params, nil)
	if s.record.Modern = err == nil; err == nil {
		return p, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) { // also of a server that goes on: it may be in any state
		p.Close()
		if p, err = s.start(); err != nil {
			return nil, err
		}
	}
	return s.initialized(ctx, p)
}

// initialized opens the session of a process; if it fails the process is ended.
func (s *Server) initialized(ctx context.Context, p connection) (connection, error) {
	if err := s.initialize(ctx, p); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (s *Server) start() (connection, error) {
	if s.options.Remote != nil {
		return s.options.Remote.Open()
	}
	return s.options.Command.Start(s.options.Log, s.hear)
}

// hear handles a notification of the server.
func (s *Server) hear(method string) {
	if method != "notifications/tools/list_changed" {
		return
	}
	go func() { // the answer to tools/list comes by the same stream
		s.mu.Lock()
		defer s.mu.Unlock()
		ctx, stop := context.WithTimeout(context.Background(), startTime)
		defer stop()
		if s.process == nil { // the start lists them
			return
		}
		if err := s.relist(ctx); err != nil {
			s.options.Log.Warn("the changed tools of an upstream server cannot be listed", "cause", err)
		}
	}()
}

// initialize opens the session of the older era.
func (s *Server) initialize(ctx context.Context, p connection) error {
	params, err := json.Marshal(map[string]any{
		"protocolVersion": sessionsProtocol, "capabilities": struct{}{}, "clientInfo": s.self(),
	})
	if err != nil {
		return err
	}
	if _, err := p.Call(ctx, "initialize", params, nil); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return p.Notify("notifications/initialized", json.RawMessage("{}"))
}

func (s *Server) self() map[string]string {
	return map[string]string{"name": "mcp-funnel", "version": s.options.Version}
}

// declared returns params with what each request of the stateless era declares.
func (s *Server) declared(params json.RawMessage) (json.RawMessage, error) {
	for name, value := range map[string]any{
		metaPrefix + "protocolVersion":    statelessProtocol,
		metaPrefix + "clientInfo":         s.self(),
		metaPrefix + "clientCapabilities": struct{}{},
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if params, err = mcpclient.WithMeta(params, name, raw); err != nil {
			return nil, err
		}
	}
	return params, nil
}

// run returns the function that runs a tool of the server.
func (s *Server) run(name string) func(context.Context, tools.Input, tools.Output) error {
	return func(ctx context.Context, in tools.Input, out tools.Output) error {
		if !s.options.Observe && !slices.Contains(s.options.Literal, name) {
			names := &resolver{jq: s.options.JQ, in: in}
			var err error
			if in.Args, err = names.resolve(ctx, in.Args); err != nil {
				return err
			}
			for _, note := range names.notes {
				out.Note(note)
			}
		}
		params, err := json.Marshal(struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}{name, in.Args})
		if err != nil {
			return err
		}
		if _, _, err := s.running(ctx); err != nil {
			return err
		}
		if err := s.heldBack(name); err != nil {
			return err
		}
		raw, err := s.request(ctx, "tools/call", params, func(p json.RawMessage) {
			var at struct {
				Progress, Total float64
				Message         string
			}
			if json.Unmarshal(p, &at) == nil {
				out.Progress(int64(at.Progress), int64(at.Total), at.Message)
			}
		})
		if fault := (*jsonrpc.Fault)(nil); errors.As(err, &fault) {
			return fmt.Errorf("%s (%d)", fault.Message, fault.Code)
		}
		if err != nil {
			return err
		}
		return writeResult(raw, out)
	}
}
