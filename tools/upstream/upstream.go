// Package upstream offers the tools of other MCP servers. What they answer goes through the funnel: a small result is
// passed on as it was written, a large one is stored.
//
//	Group ── Session: the servers of one client, group.go
//	           └─ Server ── record.go: what is approved ── system/mcpclient: the process
//	                ├─ start.go: starts it, and finds out which era it speaks
//	                ├─ list.go, listing.go: its tools and other lists, as it writes them
//	                ├─ exchange.go: a call, and what the server asks meanwhile
//	                └─ result.go: a result of a call, as output of a tool
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/delta"
	"github.com/mcp-funnel/mcp-funnel/tools/reference"
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

// Options configures one server.
type Options struct {
	Common
	Name        string // of [a-z0-9_-]; prefix of names that clash with others
	Command     mcpclient.Command
	Written     []string            // the words of Command with their variables, which may be secrets; nil: it has none
	Remote      *mcpclient.Endpoint // instead of Command
	NoReference []string            // tools whose arguments are no references
	Allow       []string            // patterns of the tools that are offered, with * and ?; none: all
	Deny        []string            // patterns of tools that are not
	Timeout     time.Duration       // of a call; 0: none
	record      string              // distinguishes records of servers with the same command; "": no other has it
	Defer       int                 // tokens of the definitions that are listed whole; 0: all are
	place       string              // distinguishes records of servers with the same words: see [mcpclient.Command.Place]
	many        bool                // the group has other servers
	awaited     bool                // tools waits until the start has ended, not only listTime
	starts      chan struct{}       // semaphore of concurrent starts
}

// Server is another MCP server of one client. It is started by its first use, and again after it has ended.
type Server struct {
	options Options
	client  Client
	last    delta.Outputs[lastCall, struct{}]
	life    context.Context // ends with close
	end     context.CancelFunc

	level   atomic.Pointer[string] // lowest level of log messages that the client wants; nil: not set
	changed chan struct{}          // holds a token if the server said that its tools changed

	mu       sync.Mutex // guards the fields below; never held during a request to the server
	process  connection
	starting chan struct{} // closed when the start has ended; nil: none
	failure  error         // why the last start failed
	damaged  error         // why its record cannot be read: the server is not started
	record   *Record
	before   []string        // names of the tools that a server of this name had when it last started; nil: it is known
	present  map[string]bool // the tools that the process lists; nil: not known yet
	asTasks  []string        // tools that are not listed because they run only as tasks
	listed   []tools.Tool    // what [Server.tools] returns, in this version
	version  int
	failed   int // starts in a row
	next     time.Time
	mentions []string                      // URIs of resources that its results named, the latest last
	watched  map[string]context.CancelFunc // subscriptions of the stateless protocol, by URI; "" is that of the lists
	open     []*exchange
	waiting  map[string][]*exchange // exchanges that wait for a repeated call, by call

	deferred map[string]json.RawMessage // whole entries of the tools beyond Options.Defer
	used     map[string]bool            // tools of deferred that were called: they are listed whole
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

// Words returns the words of the server's command, or its URL without a query, which may hold a key.
func (o Options) Words() []string {
	if o.Remote != nil {
		url, _, _ := strings.Cut(o.Remote.URL, "?")
		return []string{url}
	}
	if o.Written != nil {
		return o.Written
	}
	return o.Command.Args
}

// key names the record of the server.
func (o Options) key() string {
	words := o.Words()
	if o.Remote != nil {
		words = []string{o.Remote.URL}
	}
	if o.record != "" {
		words = append(slices.Clone(words), "", o.record)
	}
	if o.place != "" {
		words = append(slices.Clone(words), "", "", o.place)
	}
	return Key(words)
}

// newServer returns a server that is not started.
func newServer(o Options, c Client) *Server {
	s := &Server{
		options: o, client: c, record: &Record{V: 1, Command: o.Words(), Dir: o.place}, waiting: map[string][]*exchange{},
		watched: map[string]context.CancelFunc{}, changed: make(chan struct{}, 1), used: map[string]bool{},
	}
	s.life, s.end = context.WithCancel(context.Background())
	if o.Records == nil {
		return s
	}
	r, err := o.Records.Load(o.key())
	if place := o.place; err == nil && r == nil && place != "" {
		o.place = "" // what was approved of these words before a file had such a name stays what is approved
		if r, err = o.Records.Load(o.key()); r != nil {
			r.Dir = place
		}
	}
	if s.damaged = err; r != nil && err == nil {
		s.record = r
	} else if o.many {
		s.before = o.Records.named(o.Name)
	}
	return s
}

// follow starts the server before it is used, and lists its tools again whenever they change.
func (s *Server) follow() {
	if _, _, err := s.running(s.life); err != nil && s.life.Err() == nil {
		s.options.Log.Warn("an upstream server does not start", "server", s.options.Name, "cause", err)
	}
	for {
		select {
		case <-s.changed:
			s.relist()
		case <-s.life.Done():
			return
		}
	}
}

// close ends the server, also one that is being started.
func (s *Server) close() {
	s.end()
	s.mu.Lock()
	p, starting := s.process, s.starting
	s.mu.Unlock()
	if starting != nil {
		<-starting
		s.mu.Lock()
		p = s.process
		s.mu.Unlock()
	}
	if p != nil {
		p.Close()
	}
}

// hear handles a notification of the server.
func (s *Server) hear(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed":
		select {
		case s.changed <- struct{}{}:
		default: // relist has not begun yet
		}
	case "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/message", "notifications/elicitation/complete":
		s.client.Notify(method, params)
	}
}

// relist lists the tools again. It waits for a start that lists them now: they may have changed after that.
func (s *Server) relist() {
	s.mu.Lock()
	p, modern, starting := s.process, s.record.Modern, s.starting
	s.mu.Unlock()
	if starting != nil {
		<-starting
		s.mu.Lock()
		p, modern = s.process, s.record.Modern
		s.mu.Unlock()
	}
	if p == nil {
		return // its next start lists them
	}
	ctx, stop := context.WithTimeout(s.life, startTime)
	defer stop()
	listed, err := s.list(ctx, p, modern, "tools/list", "tools")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.process != p: // its successor lists its own
	case err != nil:
		s.options.Log.Warn("the changed tools of an upstream server cannot be listed", "cause", err)
	default:
		s.compare(listed, nil)
	}
}

// maxInstructions is how much of a server's instructions is passed on, in bytes.
const maxInstructions = 4 << 10

func instructionsIn(result json.RawMessage) string {
	var r struct {
		Instructions string `json:"instructions"`
	}
	_ = json.Unmarshal(result, &r) // a server need not have any
	return content.Clip(r.Instructions, maxInstructions)
}

// instructions returns the server's instructions, and how many of its tools are held back. It waits for a server that
// was not seen before, at most listTime: the server may ask the client for its roots before it answers.
func (s *Server) instructions(ctx context.Context) (string, error) {
	s.mu.Lock()
	known := s.record.known()
	s.mu.Unlock()
	if !known {
		soon, stop := context.WithTimeout(ctx, listTime)
		defer stop()
		if _, _, err := s.running(soon); err != nil && soon.Err() == nil {
			return "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == 0 && s.record.known() {
		s.build()
	}
	text := s.record.Instructions
	if n := len(s.record.Held); n > 0 && !s.options.Observe {
		text = strings.TrimSpace(fmt.Sprintf("%s\n\n%d of its tools changed or are new, and are not listed before a person approves them: "+
			"%s upstream diff %s", text, n, s.options.Program, s.options.key()))
	}
	if n := len(s.deferred); n > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s\n\n%s listed without arguments: a call with the right ones works, "+
			"and one with wrong ones is answered with their schema", text, content.Plural(int64(n), "tool is", "tools are")))
	}
	if len(s.asTasks) > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s\n\nNot listed, because tasks are not passed on: %s", text,
			content.Clip(content.Visible(strings.Join(s.asTasks, ", "), false), maxAside)))
	}
	return text, nil
}

// capabilities returns the client's capabilities for what a server may ask: sampling, elicitation and roots.
func (s *Server) capabilities() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	_ = json.Unmarshal(s.client.Capabilities, &all) // none
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		return name != "sampling" && name != "elicitation" && name != "roots"
	})
	return all
}

func (o *Options) self() map[string]string {
	return map[string]string{"name": "mcp-funnel", "version": o.Version}
}

// declared returns params with what each request of the stateless era declares.
func (s *Server) declared(params json.RawMessage) (json.RawMessage, error) {
	all := map[string]any{
		metaPrefix + "protocolVersion":    statelessProtocol,
		metaPrefix + "clientInfo":         s.options.self(),
		metaPrefix + "clientCapabilities": s.capabilities(),
	}
	if level := s.level.Load(); level != nil {
		all[metaPrefix+"logLevel"] = *level
	}
	return mcpclient.WithMeta(params, all)
}

// hasEnded reports whether a session with a server at a URL is lost.
func hasEnded(p connection) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// run returns the function that runs a tool of the server. A call that only reads is sent again, once, if the server at
// a URL has lost the session.
func (s *Server) run(name string, readOnly bool) func(context.Context, tools.Input, tools.Output) error {
	return func(ctx context.Context, in tools.Input, out tools.Output) error {
		if s.options.Timeout > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, s.options.Timeout,
				fmt.Errorf("the server has not answered within its timeout of %s", s.options.Timeout))
			defer stop()
		}
		whole := s.use(name)
		call, err := json.Marshal([]any{name, in.Args})
		if err != nil {
			return err
		}
		if !s.options.Observe && !s.options.takesNoReference(name) {
			names := &resolver{Reader: reference.Reader{JQ: s.options.JQ, In: in}}
			if in.Args, err = names.resolve(ctx, in.Args, s.schemaOf(name, in.Args)); err != nil {
				return err
			}
			if names.used && whole == nil {
				err = conform(s.member(name, "inputSchema"), in.Args)
			}
			if err != nil {
				return err
			}
			for _, note := range names.Notes {
				out.Note(note)
			}
		}
		if whole != nil {
			if wrong := conform(s.member(name, "inputSchema"), in.Args); wrong != nil {
				return explain(wrong, whole, in, out)
			}
		}
		params, err := json.Marshal(struct {
			Name      string                     `json:"name"`
			Arguments json.RawMessage            `json:"arguments"`
			Meta      map[string]json.RawMessage `json:"_meta,omitempty"`
		}{name, in.Args, in.Meta})
		if err != nil {
			return err
		}
		var raw json.RawMessage
		var failed error
		for again := false; ; again = true {
			p, modern, err := s.running(ctx)
			if err == nil {
				err = s.heldBack(name)
			}
			if err != nil {
				return err
			}
			raw, err = s.call(ctx, string(call), params, p, modern, in, out)
			if err == nil || again || !readOnly || s.options.Remote == nil || ctx.Err() != nil || !hasEnded(p) {
				failed = err
				break
			}
		}
		switch fault := (*jsonrpc.Fault)(nil); {
		case errors.As(failed, &fault):
			return refused(fault)
		case errors.Is(failed, context.DeadlineExceeded) && s.options.Timeout > 0:
			return context.Cause(ctx)
		case failed != nil:
			return failed
		}
		s.remember(raw)
		return writeResult(raw, in, out, func(text string) { s.since(ctx, name, text, in, out) })
	}
}

// remember stores the URIs of the resources that a result names, of the last thousand.
func (s *Server) remember(result json.RawMessage) {
	if !s.options.many || !bytes.Contains(result, []byte(`"resource`)) {
		return
	}
	var all struct {
		Content  []mention                   `json:"content"`
		Messages []struct{ Content mention } `json:"messages"` // of a prompt
	}
	_ = json.Unmarshal(result, &all) // another result names none
	for _, m := range all.Messages {
		all.Content = append(all.Content, m.Content)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range all.Content {
		if uri := cmp.Or(one.URI, one.Resource.URI); uri != "" && !slices.Contains(s.mentions, uri) {
			s.mentions = append(s.mentions, uri)
		}
	}
	s.mentions = s.mentions[max(0, len(s.mentions)-maxEntries):]
}

// mention is the URI in a link to a resource, or of an embedded resource.
type mention struct {
	URI      string               `json:"uri"`
	Resource struct{ URI string } `json:"resource"`
}

// hasNamed reports whether a result of the server named a resource.
func (s *Server) hasNamed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.mentions, uri)
}

// refused returns the error of a call that the server refuses, with what else it says.
func refused(fault *jsonrpc.Fault) error {
	if data, err := json.Marshal(fault.Data); err == nil && fault.Data != nil {
		return fmt.Errorf("%s (%d): %s", fault.Message, fault.Code, content.ClipBytes(string(data), smallText))
	}
	return fmt.Errorf("%s (%d)", fault.Message, fault.Code)
}

// takesNoReference reports whether Options.NoReference names a tool, with or without the prefix of the server.
func (o *Options) takesNoReference(name string) bool {
	return slices.Contains(o.NoReference, name) || slices.Contains(o.NoReference, o.Name+"_"+name)
}
