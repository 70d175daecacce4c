package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// This file connects a client with the upstream servers of [Options].Upstreams: it lists and calls what they offer, and
// passes on their notifications and questions. Each connection has servers of its own; without sessions, each identity
// and funnel/session has.

const (
	maxUpstreams       = 64               // clients with upstream servers
	upstreamsIdle      = 10 * time.Minute // after its last request the servers of a client without sessions end
	upstreamCallTime   = 24 * time.Hour   // time limit of a call of an upstream server's tool
	streamPoll         = 50 * time.Millisecond
	maxUpstreamNotices = 256 // queued notifications for one client; further ones are dropped
)

// upstreams is the upstream servers of one client.
type upstreams struct {
	*upstream.Session
	notes chan notice

	mu        sync.Mutex
	listeners map[*hearer]bool // each receives the notifications of the upstream servers
	watched   map[string]int   // number of subscriptions/listen by resource URI
	users     int              // running requests that use it
	used      time.Time        // when the last request ended
	stop      context.CancelFunc
	idle      *time.Timer // ends the upstream servers; nil: it ends with its connection
}

type notice struct {
	method string
	params json.RawMessage
	passed chan struct{} // closed instead of sending; nil: it is sent
}

type hearer func(method string, params json.RawMessage)

// upstreams returns the upstream servers of the call's client, which it opens at first use; nil if there are none.
func (k *call) upstreams() (*upstreams, error) {
	s, c := k.conn.server, k.conn
	if s.options.Upstreams == nil || k.opened != nil {
		return k.opened, nil
	}
	key := c.account.Owner + "\x00" + c.account.ID
	if k.frame.Stateless() { // each request declares the capabilities, and a server gets them once
		key += "\x00" + string(k.frame.Capabilities)
	}
	s.upstreamsMu.Lock()
	defer s.upstreamsMu.Unlock()
	r := s.upstreams[key]
	if r == nil {
		if len(s.upstreams) >= maxUpstreams && !s.endIdlest() {
			return nil, jsonrpc.Faultf(
				jsonrpc.CodeBusy, "busy: %d clients have servers of their own; try again later", maxUpstreams,
			)
		}
		r = s.openUpstreams(k, key)
	}
	k.opened = r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users++; r.idle != nil {
		r.idle.Stop()
	}
	return r, nil
}

// leaveUpstreams records that the request no longer uses the upstream servers.
func (k *call) leaveUpstreams() {
	r := k.opened
	if k.opened = nil; r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
	if r.users--; r.users == 0 && r.idle != nil {
		r.idle.Reset(upstreamsIdle)
	}
}

// endIdlest ends the upstream servers of the client whose last use of them is longest ago. It returns false if all are
// in use. The caller holds upstreamsMu.
func (s *Server) endIdlest() bool {
	var idlest *upstreams
	for _, r := range s.upstreams {
		r.mu.Lock()
		if r.users == 0 && (idlest == nil || r.used.Before(idlest.used)) {
			idlest = r
		}
		r.mu.Unlock()
	}
	if idlest == nil {
		return false
	}
	maps.DeleteFunc(s.upstreams, func(_ string, r *upstreams) bool { return r == idlest })
	go idlest.end()
	return true
}

// openUpstreams opens the upstream servers for the client of a call. The caller holds upstreamsMu.
func (s *Server) openUpstreams(k *call, key string) *upstreams {
	r := &upstreams{notes: make(chan notice, maxUpstreamNotices), listeners: map[*hearer]bool{}, watched: map[string]int{}}
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
		h, stream := c.agreed.Load(), anyStream{c}
		client.Capabilities = h.raw
		client.Ask = func(ctx context.Context, q tools.Question) (json.RawMessage, error) {
			// The client cannot answer before it is initialized and has a stream: of a call, or its own.
			for !c.waitUntil(ctx, func(c *Conn) bool { return c.ready.Load() }) || !stream.open() {
				select {
				case <-time.After(streamPoll):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return c.ask(ctx, stream.send, h.capabilities, q)
		}
	}
	r.Session = s.options.Upstreams.Open(client)
	s.upstreams[key] = r
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go r.deliver(ctx)
	end := func(used bool) {
		s.upstreamsMu.Lock()
		r.mu.Lock()
		ends := s.upstreams[key] == r && (used || r.users == 0)
		if r.mu.Unlock(); ends {
			delete(s.upstreams, key)
		}
		if s.upstreamsMu.Unlock(); ends {
			r.end()
		}
	}
	if c.account.ID == c.id {
		context.AfterFunc(c.ctx, func() { end(true) })
	} else {
		r.idle = time.AfterFunc(upstreamsIdle, func() { end(false) })
	}
	return r
}

func (r *upstreams) end() {
	r.stop()
	r.Close()
}

// flush waits until the notifications that came before are passed on: those of a call precede its answer.
func (r *upstreams) flush(ctx context.Context) {
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
func (r *upstreams) deliver(ctx context.Context) {
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

func (r *upstreams) listen(hear hearer) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[&hear] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, &hear)
	}
}

// hearUpstreams sends the notifications of the upstream servers to a client of the sessions era, until the connection
// ends.
func (c *Conn) hearUpstreams() {
	r := c.server.openedUpstreams(c.account)
	if r == nil {
		return
	}
	stop := r.listen(func(method string, params json.RawMessage) {
		if params == nil {
			params = json.RawMessage("{}")
		}
		params = c.server.masked(params)
		if message, err := jsonrpc.Notification(method, params); err == nil {
			_ = anyStream{c}.send(message) // a client without a stream gets none
		}
	})
	context.AfterFunc(c.ctx, stop)
}

// anyStream is the stream of an open tool call of a connection, or else the connection's own.
type anyStream struct{ *Conn }

func (c anyStream) send(message []byte) error {
	if open := c.openTool(); open != nil && open.notes.Forward(message) == nil {
		return nil
	}
	return c.SendOwn(message)
}

// openTool returns a tool call that is open; nil if there is none.
func (c anyStream) openTool() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.calls {
		if k.frame.Method == string(mcp.MethodToolsCall) {
			return k
		}
	}
	return nil
}

// open reports whether send can send.
func (c anyStream) open() bool {
	if c.openTool() != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams) > 0
}

// openedUpstreams returns the upstream servers of a client of the sessions era; nil if they were not opened.
func (s *Server) openedUpstreams(client funnel.Session) *upstreams {
	if s.options.Upstreams == nil {
		return nil
	}
	s.upstreamsMu.Lock()
	defer s.upstreamsMu.Unlock()
	return s.upstreams[client.Owner+"\x00"+client.ID]
}

// listChanges are the notifications of changed lists, and the member of a filter that asks for each.
var listChanges = map[string]func(mcp.SubscriptionFilter) bool{
	mcp.MethodNotificationToolsListChanged:     func(f mcp.SubscriptionFilter) bool { return f.ToolsListChanged },
	mcp.MethodNotificationPromptsListChanged:   func(f mcp.SubscriptionFilter) bool { return f.PromptsListChanged },
	mcp.MethodNotificationResourcesListChanged: func(f mcp.SubscriptionFilter) bool { return f.ResourcesListChanged },
}

// listenUpstreams sends the notifications of the upstream servers that a subscriptions/listen selects, until stop is
// called. It subscribes to resources of these servers, and returns the URIs for which that succeeded.
func (k *call) listenUpstreams(
	ctx context.Context, id json.RawMessage, uris []string,
) (subscribed []string, stop func()) {
	r, err := k.upstreams()
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
