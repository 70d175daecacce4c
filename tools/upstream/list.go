package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Limits of a list.
const (
	maxPages   = 100
	maxEntries = 1000
)

// tools returns the approved tools of the server, in its order, and the version of that list. If the server was seen
// before, the tools come from its record, and tools does not wait for the start.
func (s *Server) tools(ctx context.Context) (all []tools.Tool, version int, err error) {
	s.mu.Lock()
	known := s.record.known()
	s.mu.Unlock()
	if !known {
		soon, stop := ctx, context.CancelFunc(func() {})
		if !s.options.awaited { // its tools are listed once they are there
			soon, stop = context.WithTimeout(ctx, listTime)
		}
		_, _, err := s.running(soon)
		late := soon.Err() != nil && ctx.Err() == nil // before stop, which ends soon too
		stop()
		if err != nil && late {
			err = fmt.Errorf("the server %s has not answered within %s", s.options.Name, listTime)
		}
		if err != nil {
			s.mu.Lock()
			s.version = max(s.version, 1) // so that compare notifies the client
			s.mu.Unlock()
			return nil, 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damaged != nil {
		return nil, 0, s.damaged
	}
	if s.version == 0 {
		s.build()
	}
	return s.listed, s.version, nil
}

// build makes a new list of tools: those that are approved, not held back, and that the process has. The caller holds
// the lock.
func (s *Server) build() {
	s.version++
	s.listed, s.asTasks, s.deferred = nil, nil, map[string]json.RawMessage{}
	room := s.options.Defer
	for _, d := range s.record.Approved {
		name := nameOf(d)
		if s.present != nil && !s.present[name] || s.record.holds(name) || !s.options.allows(name) {
			continue
		}
		t, err := s.tool(d)
		if errors.Is(err, errTask) {
			s.asTasks = append(s.asTasks, name)
		}
		if err != nil {
			s.options.Log.Warn("a tool of an upstream server is not offered", "server", s.options.Name, "cause", err)
			continue
		}
		if s.options.Defer > 0 {
			t = s.fitted(t, &room)
		}
		s.listed = append(s.listed, t)
	}
}

// allows reports whether Options.Allow and Options.Deny let a tool be offered.
func (o *Options) allows(name string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	return (len(o.Allow) == 0 || slices.ContainsFunc(o.Allow, matches)) &&
		!slices.ContainsFunc(o.Deny, matches)
}

// holds reports whether a tool is held back.
func (r *Record) holds(name string) bool {
	return slices.ContainsFunc(r.Held, func(h Held) bool { return h.Name == name })
}

// known reports whether the server was seen before.
func (r *Record) known() bool { return r.Approved != nil }

// compare compares the tools that the server lists with those that are approved, by any process. On first sight all
// are. The caller holds the lock; hello is what the server said at its start, nil later.
func (s *Server) compare(listed []json.RawMessage, hello *greeting) {
	listed = firstOf(listed, nameOf) // JSON readers differ in which definition of a name they use
	update := func(now *Record) (*Record, error) {
		if now == nil {
			now = s.record
		}
		changed := !now.known()
		if changed {
			now.Approved = listed
		}
		if hello != nil {
			changed = changed || now.Modern != hello.modern || now.Instructions != hello.instructions ||
				now.Server != s.options.Name
			now.Modern, now.Instructions, now.Server = hello.modern, hello.instructions, s.options.Name
		} else {
			now.Modern = s.record.Modern
		}
		changed = now.compare(listed) || changed
		if s.record = now; !changed {
			return nil, nil
		}
		return now, nil
	}
	if s.options.Records == nil {
		_, _ = update(nil) // never fails
	} else if err := s.options.Records.Change(s.options.key(), update); err != nil {
		s.options.Log.Warn("the definitions of an upstream server's tools are not remembered", "cause", err)
		_, _ = update(nil) // never fails
	}
	before := s.listed
	s.present = map[string]bool{}
	for _, d := range listed {
		s.present[nameOf(d)] = true
	}
	s.build()
	same := func(a, b tools.Tool) bool { return canonical(a.Listing) == canonical(b.Listing) }
	if s.version > 1 && !slices.EqualFunc(before, s.listed, same) {
		s.client.Notify("notifications/tools/list_changed", nil)
	}
	if held := len(s.record.Held); held > 0 {
		s.options.Log.Warn("tools of an upstream server are held back: their definitions changed, or are new; look at them and approve them",
			"with", s.options.Program+" upstream diff "+s.options.key(), "tools", held)
	}
}

// firstOf removes entries with a key that occurred before.
func firstOf(entries []json.RawMessage, key func(json.RawMessage) string) []json.RawMessage {
	seen := map[string]bool{}
	return slices.DeleteFunc(entries, func(e json.RawMessage) bool {
		before := seen[key(e)]
		seen[key(e)] = true
		return before
	})
}

func (s *Server) holds(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.holds(name)
}

// heldBack returns an error if a tool is held back.
func (s *Server) heldBack(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.record.holds(name) {
		return nil
	}
	if s.options.Records != nil {
		r, err := s.options.Records.Load(s.options.key())
		if err == nil && r != nil && !r.holds(name) { // approved meanwhile
			s.record = r
			s.build()
			s.client.Notify("notifications/tools/list_changed", nil)
			return nil
		}
	}
	key, why := s.options.key(), "the server has changed the definition of %s since it was approved"
	if definition(s.record.Approved, name) == nil {
		why = "the tool %s is new since the tools of the server were approved"
	}
	return fmt.Errorf(why+", and the call was not passed on; "+
		"a person can look at it and approve it: %[4]s upstream diff %[2]s %[3]s, %[4]s upstream approve %[2]s %[3]s",
		name, key, name, s.options.Program)
}

// listTime is the time limit of a list of a server: the client waits for it.
const listTime = 5 * time.Second

// entries returns the entries of all pages of a list as the server writes them, none if it does not have that method.
func (s *Server) entries(ctx context.Context, method, member string) ([]json.RawMessage, error) {
	ctx, stop := context.WithTimeout(ctx, listTime)
	defer stop()
	p, modern, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.list(ctx, p, modern, method, member)
	if fault := (*jsonrpc.Fault)(nil); errors.As(err, &fault) && fault.Code == mcpclient.MethodNotFound {
		return nil, nil
	}
	return all, err
}

// do sends a request to the server, and returns its result as it was written.
func (s *Server) do(ctx context.Context, r Request) (json.RawMessage, error) {
	p, modern, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Method == "resources/unsubscribe":
		s.mu.Lock()
		stop := s.watched[r.Name]
		delete(s.watched, r.Name)
		s.mu.Unlock()
		if stop != nil {
			stop()
		}
		if modern {
			return json.RawMessage("{}"), nil
		}
	case r.Method == "resources/subscribe" && modern:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watched[r.Name] == nil {
			s.watch(p, modern, r.Name)
		}
		return json.RawMessage("{}"), nil
	case r.Method == "resources/subscribe":
		result, err := s.send(ctx, p, modern, r.Method, r.Params, nil, r.Ask)
		if err == nil {
			s.mu.Lock()
			s.watched[r.Name] = func() {} // a new process must hear of it
			s.mu.Unlock()
		}
		return result, err
	}
	result, err := s.send(ctx, p, modern, r.Method, r.Params, nil, r.Ask)
	s.remember(result)
	return result, err
}

// watch subscribes to a resource, and to the lists of a server of the stateless protocol with "". A subscription of
// that protocol is a request that stays open; if it ends it is sent again, with growing pauses. The caller holds the
// lock.
func (s *Server) watch(p connection, modern bool, uri string) {
	if len(s.watched) >= maxEntries {
		return
	}
	ctx, stop := context.WithCancel(s.life)
	s.watched[uri] = stop
	if !modern {
		params, _ := json.Marshal(map[string]string{"uri": uri}) // cannot fail
		if uri != "" {
			go p.Call(ctx, "resources/subscribe", params, nil) //nolint:errcheck // the server has accepted it once
		}
		return
	}
	what := map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}
	if uri != "" {
		what = map[string]any{"resourceSubscriptions": []string{uri}}
	}
	raw, err := json.Marshal(map[string]any{"notifications": what})
	if err == nil {
		raw, err = s.declared(raw)
	}
	if err == nil {
		go listen(ctx, p, raw)
	}
}

// listen keeps a subscription of the stateless protocol open until ctx ends or the server refuses it.
func listen(ctx context.Context, p connection, params json.RawMessage) {
	for pause := time.Second; ; pause = min(2*pause, longest) {
		_, err := p.Call(ctx, "subscriptions/listen", params, nil)
		if fault := (*jsonrpc.Fault)(nil); errors.As(err, &fault) {
			return // optional for a server
		}
		select {
		case <-time.After(pause):
		case <-p.Ended():
			return
		case <-ctx.Done():
			return
		}
	}
}

// tell sends a notification if the server runs and is of the sessions era.
func (s *Server) tell(method string) {
	s.mu.Lock()
	p, modern := s.process, s.record.Modern
	s.mu.Unlock()
	if p != nil && !modern {
		_ = p.Notify(method, json.RawMessage("{}")) // a server that has ended asks again when it starts
	}
}

// setLevel sets the lowest level of log messages that the server sends, now and after later starts.
func (s *Server) setLevel(ctx context.Context, level string) {
	s.level.Store(&level)
	s.mu.Lock()
	p, modern := s.process, s.record.Modern
	s.mu.Unlock()
	if p != nil && !modern { // a request of the stateless era names the level itself
		setLevel(ctx, p, level)
	}
}

func setLevel(ctx context.Context, p connection, level string) {
	_, _ = p.Call(ctx, "logging/setLevel", fmt.Appendf(nil, `{"level":%q}`, level), nil) // optional for a server
}

// list returns the entries of all pages of a list.
func (s *Server) list(
	ctx context.Context, p connection, modern bool, method, member string,
) (all []json.RawMessage, err error) {
	all = []json.RawMessage{}
	cursor, seen := json.RawMessage(nil), map[string]bool{}
	for range maxPages {
		params := json.RawMessage("{}")
		if cursor != nil {
			params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
		}
		if modern {
			if params, err = s.declared(params); err != nil {
				return nil, err
			}
		}
		raw, err := p.Call(ctx, method, params, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		if err = json.Unmarshal(raw, &page); err == nil {
			if err = json.Unmarshal(page[member], &entries); page[member] == nil {
				err = fmt.Errorf("the result has no member %q", member)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		if all = append(all, entries...); len(all) > maxEntries {
			return nil, fmt.Errorf("the server lists more than %d %s", maxEntries, member)
		}
		if cursor = page["nextCursor"]; cursor == nil || string(cursor) == "null" || string(cursor) == `""` {
			return all, nil
		}
		if seen[string(cursor)] {
			s.options.Log.Warn("a list of an upstream server does not end: its cursor does not advance",
				"server", s.options.Name, "list", method, "cursor", jsonrpc.Quoted(string(cursor)))
			return firstOf(all, func(e json.RawMessage) string { return string(e) }), nil
		}
		seen[string(cursor)] = true
	}
	return nil, fmt.Errorf("the list of %s has more than %d pages", member, maxPages)
}
