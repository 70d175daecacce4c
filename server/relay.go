package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// This file connects a client with the other servers of [Options].Upstreams: it lists and calls what they offer, and
// passes on their notifications and questions. Each connection has servers of its own; without sessions, each identity
// and funnel/session has.

const (
	maxRelays  = 64               // open relays
	relayIdle  = 10 * time.Minute // time without a request after which the relay of a client without sessions ends
	relayTime  = 24 * time.Hour   // time limit of a call of another server's tool
	streamPoll = 50 * time.Millisecond
	maxRelayed = 256 // queued notifications for one client; further ones are dropped
)

// relay is the other servers of one client.
type relay struct {
	*upstream.Session
	notes chan notice

	mu        sync.Mutex
	listeners map[*hearer]bool // each receives the notifications of the other servers
	watched   map[string]int   // number of subscriptions/listen by resource URI
	users     int              // running requests that use it
	used      time.Time        // when the last request ended
	stop      context.CancelFunc
	idle      *time.Timer // ends the relay; nil: it ends with its connection
}

type notice struct {
	method string
	params json.RawMessage
	passed chan struct{} // closed instead of sending; nil: it is sent
}

type hearer func(method string, params json.RawMessage)

// relay returns the other servers of the call's client, which it opens at first use; nil if there are none.
func (k *call) relay() (*relay, error) {
	s, c := k.conn.server, k.conn
	if s.options.Upstreams == nil || k.relayed != nil {
		return k.relayed, nil
	}
	key := c.account.Owner + "\x00" + c.account.ID
	if k.frame.Stateless() { // each request declares the capabilities, and a server gets them once
		key += "\x00" + string(k.frame.Capabilities)
	}
	s.relayMu.Lock()
	defer s.relayMu.Unlock()
	r := s.relays[key]
	if r == nil {
		if len(s.relays) >= maxRelays && !s.endIdlest() {
			return nil, jsonrpc.Faultf(jsonrpc.CodeBusy, "busy: %d clients have servers of their own; try again later", maxRelays)
		}
		r = s.openRelay(k, key)
	}
	k.relayed = r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.idle != nil {
		r.idle.Stop()
	}
	return r, nil
}

// leaveRelay records that the request no longer uses the relay.
func (k *call) leaveRelay() {
	r := k.relayed
	if k.relayed = nil; r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
	if r.users--; r.users == 0 && r.idle != nil {
		r.idle.Reset(relayIdle)
	}
}

// endIdlest ends the relay that was unused for longest. It returns false if all are in use. The caller holds relayMu.
func (s *Server) endIdlest() bool {
	var idlest *relay
	for _, r := range s.relays {
		r.mu.Lock()
		if r.users == 0 && (idlest == nil || r.used.Before(idlest.used)) {
			idlest = r
		}
		r.mu.Unlock()
	}
	if idlest == nil {
		return false
	}
	maps.DeleteFunc(s.relays, func(_ string, r *relay) bool { return r == idlest })
	go idlest.end()
	return true
}

// openRelay opens the other servers for the client of a call. The caller holds relayMu.
func (s *Server) openRelay(k *call, key string) *relay {
	r := &relay{notes: make(chan notice, maxRelayed), listeners: map[*hearer]bool{}, watched: map[string]int{}}
	c := k.conn
	var dropping atomic.Bool
	client := upstream.Client{Notify: func(method string, params json.RawMessage) {
		select {
		case r.notes <- notice{method: method, params: params}:
			dropping.Store(false)
		default:
			if dropping.Swap(true) {
				return // already logged
			}
			s.options.Log.Warn("a notification of an upstream server is dropped: the client reads too slowly", "method", method)
		}
	}}
	if k.frame.Stateless() {
		client.Capabilities = slices.Clone(k.frame.Capabilities)
	} else {
		h := c.agreed.Load()
		client.Capabilities = h.raw
		client.Ask = func(ctx context.Context, q tools.Question) (json.RawMessage, error) {
			// The client cannot answer before it is initialized and has a stream: of a call, or its own.
			for !c.waitUntil(ctx, func(c *Conn) bool { return c.ready.Load() }) || !c.hasStream() {
				select {
				case <-time.After(streamPoll):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return c.ask(ctx, c.sendBeside, h.capabilities, q)
		}
	}
	r.Session = s.options.Upstreams.Open(client)
	s.relays[key] = r
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.deliver(ctx)
	end := func(used bool) {
		s.relayMu.Lock()
		r.mu.Lock()
		ends := s.relays[key] == r && (used || r.users == 0)
		if r.mu.Unlock(); ends {
			delete(s.relays, key)
		}
		if s.relayMu.Unlock(); ends {
			r.end()
		}
	}
	if c.account.ID == c.id {
		context.AfterFunc(c.ctx, func() { end(true) })
	} else {
		r.idle = time.AfterFunc(relayIdle, func() { end(false) })
	}
	return r
}

func (r *relay) end() {
	r.stop()
	r.Close()
}

// flush waits until the notifications that came before are passed on: those of a call precede its answer.
func (r *relay) flush(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, StopGrace)
	defer stop()
	passed := make(chan struct{})
	select {
	case r.notes <- notice{passed: passed}:
	case <-ctx.Done():
		return
	}
	select {
	case <-passed:
	case <-ctx.Done():
	}
}

// deliver passes notifications on, one after the other.
func (r *relay) deliver(ctx context.Context) {
	for {
		select {
		case n := <-r.notes:
			if n.passed != nil {
				close(n.passed)
				continue
			}
			r.mu.Lock()
			all := slices.Collect(maps.Keys(r.listeners))
			r.mu.Unlock()
			for _, hear := range all {
				(*hear)(n.method, n.params)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *relay) listen(hear hearer) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[&hear] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, &hear)
	}
}

// hearRelay sends the notifications of the other servers to a client of the sessions era, until the connection ends.
func (c *Conn) hearRelay() {
	r := c.openedRelay()
	if r == nil {
		return
	}
	stop := r.listen(func(method string, params json.RawMessage) {
		if params == nil {
			params = json.RawMessage("{}")
		}
		params = c.server.masked(params)
		if message, err := jsonrpc.Notification(method, params); err == nil {
			_ = c.sendBeside(message) // a client without a stream gets none
		}
	})
	context.AfterFunc(c.ctx, stop)
}

// sendBeside sends a message on the stream of an open tool call, or else on the connection's own stream.
func (c *Conn) sendBeside(message []byte) error {
	if open := c.openTool(); open != nil && open.notes.Forward(message) == nil {
		return nil
	}
	return c.SendOwn(message)
}

// openTool returns a tool call that is open; nil if there is none.
func (c *Conn) openTool() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.frame.Method == string(mcp.MethodToolsCall) {
			return k
		}
	}
	return nil
}

// hasStream reports whether sendBeside can send.
func (c *Conn) hasStream() bool {
	if c.openTool() != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) > 0
}

// openedRelay returns the other servers of a client of the sessions era; nil if they were not opened.
func (c *Conn) openedRelay() *relay {
	if c.server.options.Upstreams == nil {
		return nil
	}
	c.server.relayMu.Lock()
	defer c.server.relayMu.Unlock()
	return c.server.relays[c.account.Owner+"\x00"+c.account.ID]
}

// listChanges are the notifications of changed lists, and the member of a filter that asks for each.
var listChanges = map[string]func(mcp.SubscriptionFilter) bool{
	mcp.MethodNotificationToolsListChanged:     func(f mcp.SubscriptionFilter) bool { return f.ToolsListChanged },
	mcp.MethodNotificationPromptsListChanged:   func(f mcp.SubscriptionFilter) bool { return f.PromptsListChanged },
	mcp.MethodNotificationResourcesListChanged: func(f mcp.SubscriptionFilter) bool { return f.ResourcesListChanged },
}

// listenRelay sends the notifications of the other servers that a subscriptions/listen selects, until stop is called. It
// subscribes to resources of these servers, and returns the URIs for which that succeeded.
func (k *call) listenRelay(ctx context.Context, id json.RawMessage, uris []string) (subscribed []string, stop func()) {
	r, err := k.relay()
	if r == nil || err != nil {
		return nil, func() {}
	}
	subscribe := func(ctx context.Context, method mcp.MCPMethod, uri string) error {
		params, _ := json.Marshal(map[string]string{"uri": uri}) // cannot fail
		_, err := r.Do(ctx, upstream.Request{
			Method: string(method), Params: params, List: string(mcp.MethodResourcesList), Name: uri,
		})
		return err
	}
	for _, uri := range uris {
		if subscribe(ctx, mcp.MethodResourcesSubscribe, uri) == nil {
			subscribed = append(subscribed, uri)
			r.mu.Lock()
			r.watched[uri]++
			r.mu.Unlock()
		}
	}
	filter := k.filter
	left := r.listen(func(method string, params json.RawMessage) {
		var p map[string]any
		if asks := listChanges[method]; asks == nil || !asks(filter) {
			_ = json.Unmarshal(params, &p) // without params there is no uri
			uri, _ := p["uri"].(string)
			if method != mcp.MethodNotificationResourceUpdated || !slices.Contains(subscribed, uri) {
				return
			}
			p = map[string]any{"uri": uri}
		}
		if p == nil {
			p = map[string]any{}
		}
		p["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: id}
		k.notes.Notify(method, p)
	})
	return subscribed, func() {
		left()
		for _, uri := range subscribed {
			r.mu.Lock()
			r.watched[uri]--
			last := r.watched[uri] == 0
			r.mu.Unlock()
			if last {
				ending, stop := context.WithTimeout(context.Background(), StopGrace)
				_ = subscribe(ending, mcp.MethodResourcesUnsubscribe, uri) // at the latest, it ends with the servers
				stop()
			}
		}
	}
}

// foreign converts a request about a resource or prompt of another server. ok is false if it is about one of ours.
func (s *Server) foreign(f jsonrpc.Frame) (r upstream.Request, ok bool) {
	if s.options.Upstreams == nil {
		return r, false
	}
	r.Method = f.Method
	switch mcp.MCPMethod(f.Method) {
	case mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		r.List, r.Name = string(mcp.MethodResourcesList), f.StringOrEmpty("uri")
		return r, r.Name != "" && s.resource(r.Name) == nil && !s.hasTemplate(func(t Template) bool {
			return t.URITemplate.Regexp().MatchString(r.Name)
		})
	case mcp.MethodPromptsGet:
		r.List, r.Name = string(mcp.MethodPromptsList), f.StringOrEmpty("name")
		_, unknown := s.prompt(r.Name)
		return r, unknown != nil
	case mcp.MethodCompletionComplete:
		var ref struct{ Type, Name, URI string }
		if f.Param("ref", &ref) != nil {
			return r, false
		}
		if ref.Type == "ref/prompt" {
			r.List, r.Name = string(mcp.MethodPromptsList), ref.Name
			_, unknown := s.prompt(ref.Name)
			return r, unknown != nil
		}
		r.List, r.Name = string(mcp.MethodResourcesTemplatesList), ref.URI
		return r, ref.Type == "ref/resource" && !s.hasTemplate(func(t Template) bool { return t.URITemplate.Raw() == ref.URI })
	}
	return r, false
}

func (s *Server) hasTemplate(is func(Template) bool) bool {
	return slices.ContainsFunc(s.offers.Templates, is)
}

// passOn passes a request on to another server.
func (k *call) passOn(ctx context.Context, r upstream.Request) (any, error) {
	up, err := k.relay()
	if err != nil {
		return nil, err
	}
	params := maps.Clone(k.frame.Params)
	delete(params, "_meta")
	if meta := k.passedMeta(); len(meta) > 0 {
		if params["_meta"], err = json.Marshal(meta); err != nil {
			return nil, err
		}
	}
	if r.Params, err = json.Marshal(params); err != nil {
		return nil, err
	}
	if !k.frame.Stateless() {
		r.Ask = k.asker(ctx)
	}
	result, err := up.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	return complete(k.frame, k.conn.server.masked(result)), nil
}

// masked masks the secrets in JSON of another server. JSON without secrets stays as it was written.
func (s *Server) masked(raw json.RawMessage) json.RawMessage {
	if !s.observes() && s.options.Mask.Holds(string(raw)) {
		return s.options.Mask.JSON(raw)
	}
	return raw
}

// complete adds the resultType that the stateless era requires.
func complete(f jsonrpc.Frame, result json.RawMessage) json.RawMessage {
	if !f.Stateless() || len(result) < 2 || result[0] != '{' || membersOf(result)["resultType"] != nil {
		return result
	}
	head := `{"resultType":"complete"`
	if rest := result[1:]; rest[0] != '}' {
		head += ","
	}
	return json.RawMessage(head + string(result[1:]))
}

// relayedResult returns the result of another server's tool as that wrote it, with the notes on it as further texts. It
// removes members of _meta whose names have our prefix: a client would take them for ours.
func (k *call) relayedResult(a funnel.Answer) json.RawMessage {
	all, result := membersOf(a.Raw), a.Raw
	meta, content := membersOf(all["_meta"]), []json.RawMessage{}
	n := len(meta)
	maps.DeleteFunc(meta, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, metaPrefix) })
	if len(meta) < n && !k.conn.server.observes() {
		if delete(all, "_meta"); len(meta) > 0 {
			all["_meta"], _ = json.Marshal(meta) // it came as JSON
		}
		result, _ = json.Marshal(all)
	}
	if json.Unmarshal(all["content"], &content) == nil && len(a.Blocks) > 0 {
		for _, note := range a.Blocks {
			text, _ := json.Marshal(mcp.NewTextContent(note.Text)) // plain members
			content = append(content, text)
		}
		all["content"], _ = json.Marshal(content)
		result, _ = json.Marshal(all)
	}
	return complete(k.frame, result)
}

// membersOf returns the members of a JSON object; nil if it is none.
func membersOf(object json.RawMessage) (members map[string]json.RawMessage) {
	_ = json.Unmarshal(object, &members)
	return members
}

// relayedLists are the lists that other servers' entries are added to.
var relayedLists = []mcp.MCPMethod{mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodPromptsList}

// withRelayed adds the entries of the other servers to the first page of a list.
func (k *call) withRelayed(ctx context.Context, result any) (any, error) {
	if !slices.Contains(relayedLists, mcp.MCPMethod(k.frame.Method)) || k.frame.StringOrEmpty("cursor") != "" {
		return result, nil
	}
	s := k.conn.server
	up, err := k.relay()
	if up == nil || err != nil {
		return result, err
	}
	theirs, member := up.List(ctx, k.frame.Method)
	if len(theirs) == 0 {
		return result, nil
	}
	ours, err := json.Marshal(forEncoding(result))
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	var entries []json.RawMessage
	if err := json.Unmarshal(ours, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(all[member], &entries); err != nil {
		return nil, err
	}
	for _, entry := range theirs {
		entries = append(entries, s.masked(entry))
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	all[member] = list
	return all, nil
}
