package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
)

// sessionsProtocols are the versions that a server may agree to.
var sessionsProtocols = []string{"2024-11-05", "2025-03-26", "2025-06-18", sessionsProtocol}

// Times of a start.
const (
	discoverTime = 3 * time.Second  // for server/discover; then initialize goes to the same process
	startTime    = 20 * time.Second // of a whole start
)

// longest is the longest pause before a server is started again.
const longest = time.Minute

// running returns the process and its era, and starts one if there is none. After starts that failed it waits longer
// each time; until then calls fail at once.
func (s *Server) running(ctx context.Context) (p connection, modern bool, err error) {
	for {
		s.mu.Lock()
		if s.life.Err() != nil {
			s.mu.Unlock()
			return nil, false, mcpclient.ErrEnded
		}
		if s.damaged != nil {
			s.mu.Unlock()
			return nil, false, s.damaged
		}
		if p, modern = s.process, s.record.Modern; p != nil {
			select {
			case <-p.Ended():
				s.process = nil
				s.options.Log.Warn("an upstream server has ended, and is started again", "server", s.options.Name)
				go p.Close()
			default:
				s.mu.Unlock()
				return p, modern, nil
			}
		}
		started := s.starting
		if started == nil {
			if wait := time.Until(s.next); wait > 0 {
				s.mu.Unlock()
				return nil, false, fmt.Errorf("the server %s cannot be started: %w; it is tried again in %s",
					s.options.Name, s.failure, max(time.Second, wait.Round(time.Second)))
			}
			started = make(chan struct{})
			s.starting = started
			go s.begin(started)
		}
		s.mu.Unlock()
		select {
		case <-started:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
		s.mu.Lock()
		p, modern, err = s.process, s.record.Modern, s.failure
		s.mu.Unlock()
		if p != nil {
			return p, modern, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("the server %s cannot be started: %w", s.options.Name, err)
		}
	}
}

// begin starts the server, lists its tools, and closes started.
func (s *Server) begin(started chan struct{}) {
	free := func() {}
	select {
	case s.options.starts <- struct{}{}:
		free = sync.OnceFunc(func() { <-s.options.starts })
		defer time.AfterFunc(listTime, free).Stop() // one that hangs must not hold up others
	case <-s.life.Done():
	}
	defer free()
	var hello greeting
	var listed []json.RawMessage
	var err error
	panics.Into(&err, func() { hello, listed, err = s.greet() })
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(started)
	s.starting = nil
	if s.failure = err; err != nil {
		s.failed++
		s.next = time.Now().Add(min(longest, 250*time.Millisecond<<min(s.failed, 10)))
		return
	}
	s.failed, s.process = 0, hello.p
	s.compare(listed, &hello)
	s.greeted(hello)
}

// greet starts the server and lists its tools.
func (s *Server) greet() (hello greeting, listed []json.RawMessage, err error) {
	ctx, stop := context.WithTimeoutCause(s.life, startTime, fmt.Errorf("it has not answered within %s", startTime))
	defer stop()
	s.mu.Lock()
	known, modern := s.record.known(), s.record.Modern
	s.mu.Unlock()
	if hello, err = s.connect(ctx, known, modern); err == nil {
		listed, err = s.list(ctx, hello.p, hello.modern, "tools/list", "tools")
		if fault := (*jsonrpc.Fault)(nil); errors.As(err, &fault) && !hello.tools {
			listed, err = []json.RawMessage{}, nil // it has prompts or resources
		}
		if err != nil {
			hello.p.Close()
		}
	}
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return hello, listed, err
}

// greeted sets the log level and the subscriptions of a new process. The caller holds the lock.
func (s *Server) greeted(hello greeting) {
	again := []string{""}
	for uri, stop := range s.watched {
		if stop(); uri != "" {
			again = append(again, uri)
		}
	}
	for _, uri := range again {
		s.watch(hello.p, hello.modern, uri)
	}
	if hello.modern {
		return
	}
	if level := s.level.Load(); level != nil {
		go setLevel(s.life, hello.p, *level)
	}
}

// greeting is what a server said when it was started.
type greeting struct {
	p            connection
	modern       bool
	instructions string
	tools        bool // it says that it has tools
}

// heard takes what the server said of itself.
func (g *greeting) heard(modern bool, result json.RawMessage) {
	var r struct {
		Capabilities struct{ Tools json.RawMessage }
	}
	_ = json.Unmarshal(result, &r) // without capabilities it has no tools
	g.modern, g.instructions, g.tools = modern, instructionsIn(result), r.Capabilities.Tools != nil
}

// connect starts a process and finds out which era of the protocol it speaks, unless that is known. Many servers of the
// older one end, or answer with an error, when they are asked.
func (s *Server) connect(ctx context.Context, known, modern bool) (g greeting, err error) {
	if g.p, err = s.start(); err != nil {
		return g, err
	}
	if known && !modern {
		if err = s.initialize(ctx, &g); err == nil || ctx.Err() != nil {
			return g, err
		}
		if g.p, err = s.start(); err != nil { // it may be a newer version, which speaks the other era
			return g, err
		}
	}
	params, err := s.declared(json.RawMessage("{}"))
	if err != nil {
		g.p.Close()
		return g, err
	}
	asking, stop := context.WithTimeout(ctx, discoverTime)
	defer stop()
	raw, err := g.p.Call(asking, "server/discover", params, nil)
	if err == nil && speaksStateless(raw) {
		g.heard(true, raw)
		return g, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) { // a server that still runs may be in any state
		g.p.Close()
		if g.p, err = s.start(); err != nil {
			return g, err
		}
	}
	return g, s.initialize(ctx, &g)
}

// speaksStateless reports whether the result of server/discover lists our version of the stateless protocol, or no
// version.
func speaksStateless(result json.RawMessage) bool {
	var r struct {
		Versions []string `json:"supportedVersions"`
	}
	return json.Unmarshal(result, &r) == nil && (len(r.Versions) == 0 || slices.Contains(r.Versions, statelessProtocol))
}

// insideVariable names the environment variable with the keys of the servers that a process runs in. It detects a
// server that starts itself.
const insideVariable = "FUNNEL_INSIDE"

func (s *Server) start() (connection, error) {
	handler := mcpclient.Handler{Notify: s.hear, Request: s.answer}
	if s.options.Remote != nil {
		return s.options.Remote.Open(s.options.Log, handler)
	}
	inside := os.Getenv(insideVariable)
	if slices.Contains(strings.Fields(inside), s.options.key()) {
		return nil, errors.New("the server starts itself: its command runs mcp-funnel with the same server again")
	}
	c := s.options.Command
	c.Set = append(slices.Clone(c.Set), insideVariable+"="+strings.TrimSpace(inside+" "+s.options.key()))
	return c.Start(s.options.Log, handler)
}

// initialize opens the session of the older era; if it fails the process is ended.
func (s *Server) initialize(ctx context.Context, g *greeting) error {
	params, err := json.Marshal(map[string]any{
		"protocolVersion": sessionsProtocol, "capabilities": s.capabilities(), "clientInfo": s.options.self(),
	})
	var raw json.RawMessage
	if err == nil {
		raw, err = g.p.Call(ctx, "initialize", params, nil)
	}
	var agreed struct {
		Protocol string `json:"protocolVersion"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &agreed)
	}
	if err == nil && !slices.Contains(sessionsProtocols, agreed.Protocol) {
		err = fmt.Errorf("the server speaks protocol %s; supported are %s and %s", jsonrpc.Quoted(agreed.Protocol),
			strings.Join(sessionsProtocols, ", "), statelessProtocol)
	}
	if err == nil {
		err = g.p.Notify("notifications/initialized", json.RawMessage("{}"))
	}
	if err != nil {
		g.p.Close()
		return fmt.Errorf("initialize: %w", err)
	}
	g.heard(false, raw)
	return nil
}
