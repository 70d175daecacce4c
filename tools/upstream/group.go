package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Group is the servers that stand behind this one.
type Group struct {
	common  Common
	servers []Options

	mu       sync.Mutex
	sessions map[*Session]bool // open sessions
}

// Common is what the servers of a group have in common.
type Common struct {
	Version  string   // of this program
	Records  *Records // nil: nothing is remembered, and all tools are trusted
	Log      *slog.Logger
	JQ       tools.Tool // runs the filters of references
	Observe  bool       // pass results on whatever their size, and list outputSchema
	Program  string     // how messages name this program: mcp-funnel, with --store if one is set
	Optional bool       // it is no error if no server starts: other tools are offered too
	NoDelta  bool       // do not compare a result with the previous one
	Reserved []string   // names of other tools and prompts; a tool with such a name gets a prefix

	Count func(text string) int // tokens, for Options.Defer
}

// atOnce is how many servers of a group are started at the same time.
const atOnce = 2

// NewGroup returns a group of servers.
func NewGroup(c Common, servers ...Options) *Group {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	g := &Group{common: c, sessions: map[*Session]bool{}}
	for _, o := range servers {
		o.Common, o.many, o.awaited = c, len(servers) > 1, len(servers) == 1 && !c.Optional
		for _, other := range servers {
			if other.Name != o.Name && other.key() == o.key() { // the same command with other variables
				o.record = o.Name
			}
		}
		o.place = o.Command.Place()
		g.servers = append(g.servers, o)
	}
	return g
}

// Observes reports whether results are passed on whatever their size.
func (g *Group) Observes() bool { return g.common.Observe }

// Client is the MCP client that uses the servers of a session.
type Client struct {
	Capabilities json.RawMessage                             // as the client declared them; nil: none
	Ask          tools.Asker                                 // asks it outside of a call; nil: it cannot be asked
	Notify       func(method string, params json.RawMessage) // sends it a notification of a server
}

// Session is the servers of one client: processes and connections of its own.
type Session struct {
	group   *Group
	servers []*Server

	mu      sync.Mutex
	tools   []tools.Tool // the joined list; valid while the servers' lists have these versions
	version []int
	routes  map[string]route // where prompts and resources come from, by list and name
	listed  map[route]string // the name that each tool has in this session, also while its server is down
	owners  map[string]route // the reverse of listed
}

// route is where a tool, a prompt or a resource comes from.
type route struct {
	server *Server
	name   string // its name at the server
}

// Open returns a session of a client, and starts the servers.
func (g *Group) Open(c Client) *Session {
	s := &Session{
		group: g, routes: map[string]route{}, listed: map[route]string{}, owners: map[string]route{},
	}
	starts := make(chan struct{}, atOnce)
	for _, o := range g.servers {
		o.starts = starts
		var one *Server
		own := c
		own.Notify = func(method string, params json.RawMessage) { c.Notify(method, s.asListed(one, params)) }
		one = newServer(o, own)
		s.servers = append(s.servers, one)
	}
	g.mu.Lock()
	g.sessions[s] = true
	g.mu.Unlock()
	for _, one := range s.servers {
		go one.follow()
	}
	return s
}

// Close ends the servers.
func (s *Session) Close() {
	s.each(func(_ int, one *Server) { one.close() })
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	delete(s.group.sessions, s)
}

// Close ends the servers of all sessions.
func (g *Group) Close() {
	g.mu.Lock()
	var all sync.WaitGroup
	for s := range g.sessions {
		all.Go(s.Close)
	}
	g.mu.Unlock()
	all.Wait()
}

// each calls f for all servers, at the same time.
func (s *Session) each(f func(i int, one *Server)) {
	var all sync.WaitGroup
	for i, one := range s.servers {
		all.Go(func() { f(i, one) })
	}
	all.Wait()
}

// warn logs that something of a server is left out.
func (s *Session) warn(one *Server, what string, err error) {
	s.group.common.Log.Warn("an upstream server: "+what, "server", one.options.Name, "cause", err)
}

// Instructions returns the instructions of all servers, and how many of their tools are held back. It skips servers
// that cannot be started, and returns an error if none can.
func (s *Session) Instructions(ctx context.Context) (string, error) {
	texts, failures := make([]string, len(s.servers)), make([]error, len(s.servers))
	s.each(func(i int, one *Server) { texts[i], failures[i] = one.instructions(ctx) })
	if err := s.unlessAll(failures); err != nil {
		return "", err
	}
	if len(s.servers) > 1 {
		for i, one := range s.servers {
			if texts[i] != "" {
				texts[i] = one.options.Name + ": " + texts[i]
			}
		}
	}
	return strings.Join(slices.DeleteFunc(texts, func(t string) bool { return t == "" }), "\n\n"), nil
}

// unlessAll returns the errors if all servers failed; otherwise it logs them.
func (s *Session) unlessAll(failures []error) error {
	bad := 0
	for _, err := range failures {
		if err != nil {
			bad++
		}
	}
	if bad == len(s.servers) && !s.group.common.Optional {
		return errors.Join(failures...)
	}
	for i, err := range failures {
		if err != nil {
			s.warn(s.servers[i], "it cannot be started, and its tools are left out", err)
		}
	}
	return nil
}

// Tools returns the tools of all servers. One with a reserved name, or that of an earlier server's, gets the name of
// its server before its own; a name belongs to its server until the session ends. It is an error if no server can be
// started; the tools of others are left out.
func (s *Session) Tools(ctx context.Context) ([]tools.Tool, error) {
	lists, failures := make([][]tools.Tool, len(s.servers)), make([]error, len(s.servers))
	version := make([]int, len(s.servers))
	s.each(func(i int, one *Server) { lists[i], version[i], failures[i] = one.tools(ctx) })
	if err := s.unlessAll(failures); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(version, s.version) {
		return s.tools, nil
	}
	s.tools, s.version = nil, version
	for i, one := range s.servers {
		if failures[i] != nil {
			for _, name := range one.before {
				if one.options.allows(name) {
					_ = s.nameFor(route{one, name}) // no other server gets it
				}
			}
		}
		for _, t := range lists[i] {
			name, err := s.nameFor(route{one, t.Name}), error(nil)
			if name == "" {
				s.warn(one, "a tool is not offered", fmt.Errorf("another has the name %s", t.Name))
				continue
			}
			if name != t.Name {
				if t, err = renamed(t, name); err != nil {
					return nil, err
				}
			}
			s.tools = append(s.tools, t)
		}
	}
	return s.tools, nil
}

// nameFor returns the name that a tool has in this session; "" if another tool has its names. The caller holds the
// lock.
func (s *Session) nameFor(tool route) string {
	if name := s.listed[tool]; name != "" {
		return name
	}
	for _, name := range []string{tool.name, clipName(tool.server.options.Name + "_" + tool.name)} {
		if _, taken := s.owners[name]; !taken && !slices.Contains(s.group.common.Reserved, name) {
			s.listed[tool], s.owners[name] = name, tool
			return name
		}
	}
	return ""
}

// Tool returns a tool by its name as it is listed. ok is false if there is none; the error says that it is held back.
func (s *Session) Tool(ctx context.Context, name string) (t tools.Tool, ok bool, err error) {
	isIt := func(t tools.Tool) bool { return t.Name == name }
	s.mu.Lock()
	all := s.tools
	s.mu.Unlock()
	if at := slices.IndexFunc(all, isIt); at >= 0 { // a server that hangs must not hold up the others
		return all[at], true, nil
	}
	for {
		if all, err = s.Tools(ctx); err != nil {
			return t, false, err
		}
		if at := slices.IndexFunc(all, isIt); at >= 0 {
			return all[at], true, nil
		}
		own := func(one *Server) string { return strings.TrimPrefix(name, one.options.Name+"_") }
		held := slices.IndexFunc(s.servers, func(one *Server) bool { return one.holds(own(one)) })
		if held < 0 {
			s.mu.Lock()
			owner := s.owners[name].server
			s.mu.Unlock()
			if owner != nil { // it is down, or has the tool no more
				_, _, err = owner.running(ctx)
			}
			return t, false, err
		}
		if err := s.servers[held].heldBack(own(s.servers[held])); err != nil {
			return t, false, err
		}
	}
}

// Tell sends a notification to all running servers of the sessions era.
func (s *Session) Tell(method string) {
	s.each(func(_ int, one *Server) { one.tell(method) })
}

// SetLevel sets the lowest level of log messages that the servers send.
func (s *Session) SetLevel(ctx context.Context, level string) {
	ctx, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	s.each(func(_ int, one *Server) { one.setLevel(ctx, level) })
}
