package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// Who hears of changes. In the sessions era a client is told that the list has changed once it is
// initialized, and subscribes to single resources; both go out on the connection's own stream. In the
// stateless era a client is told what it asked for by subscriptions/listen, on the stream of that
// request, which stays open.

const (
	maxListens    = 16  // open subscriptions/listen of one connection
	maxAllListens = 512 // of all: each holds a goroutine and a stream
)

// watchOwn has a client of the sessions era told from now on.
func (c *Conn) watchOwn() {
	c.own.owner = c.who.Owner
	c.server.kept.add(&c.own)
	context.AfterFunc(c.ctx, func() { c.server.kept.remove(&c.own) })
}

// tellChanges is the deliver of the connection's own watcher.
func (c *Conn) tellChanges(what changes) error {
	return what.each(nil, func(method string, params any) error {
		message, err := encode(notification{JSONRPC: mcp.JSONRPC_VERSION, Method: method, Params: params})
		if err != nil {
			return err
		}
		return c.tell(message)
	})
}

// each words the changes as notifications; id is that of the subscription, nil in the sessions era.
func (c changes) each(id json.RawMessage, tell func(method string, params any) error) error {
	type params struct {
		Meta map[string]json.RawMessage `json:"_meta,omitempty"`
		URI  string                     `json:"uri,omitempty"`
	}
	var p params
	if id != nil {
		p.Meta = map[string]json.RawMessage{mcp.MetaKeySubscriptionID: id}
	}
	for _, uri := range c.gone {
		if err := tell(mcp.MethodNotificationResourceUpdated, params{p.Meta, uri}); err != nil {
			return err
		}
	}
	if !c.list {
		return nil
	}
	if id == nil {
		return tell(mcp.MethodNotificationResourcesListChanged, nil)
	}
	return tell(mcp.MethodNotificationResourcesListChanged, p)
}

// subscribe is a resources/subscribe.
func (s *Server) subscribe(_ context.Context, k *call) (any, error) {
	uri, fault := s.subscribed(k.frame)
	if fault != nil {
		return nil, fault
	}
	id, err := s.subscribable(k.conn.who.Owner, uri, false)
	if err != nil {
		return nil, err
	}
	if id != "" {
		err = k.conn.own.subscribe(id, uri)
	}
	if err != nil {
		return nil, faultf(mcp.INVALID_PARAMS, "%s", err)
	}
	return &mcp.EmptyResult{}, nil
}

// unsubscribe is a resources/unsubscribe; what was not subscribed to is as it should be.
func (s *Server) unsubscribe(_ context.Context, k *call) (any, error) {
	uri, fault := s.subscribed(k.frame)
	if fault != nil {
		return nil, fault
	}
	if id, err := observations.ParseID(uri); err == nil {
		k.conn.own.unsubscribe(id)
	}
	return &mcp.EmptyResult{}, nil
}

// subscribed is the resource that the request is about.
func (s *Server) subscribed(f frame) (uri string, fault *Fault) {
	if s.store == nil {
		return "", faultf(mcp.METHOD_NOT_FOUND, "resources subscribe not supported")
	}
	if uri, fault = f.str("uri"); fault == nil && uri == "" {
		fault = faultf(mcp.INVALID_PARAMS, "uri is required")
	}
	return uri, fault
}

// subscribable says whether this owner may subscribe to a resource. Those that are no observation ("")
// never change.
func (s *Server) subscribable(owner, uri string, modern bool) (observations.ID, error) {
	id, err := observations.ParseID(uri)
	if err != nil || s.store == nil || !strings.HasPrefix(uri, observations.URIPrefix) {
		if s.resource(uri) != nil {
			return "", nil
		}
		return "", notFound(modern, "unknown resource %s; what can be subscribed to is %s", quoted(uri), observationTemplate)
	}
	if _, err := s.store.Look(owner, id); err != nil {
		return "", s.unreadable(modern, id, err)
	}
	return id, nil
}

// startListening takes in a subscriptions/listen. It neither keeps a place at the gate nor has a
// deadline, and what ends the connection does not wait for it.
func (c *Conn) startListening(ctx context.Context, f frame, send Send) (work func(), k *call) {
	k = c.newCall(f, send)
	k.listens = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if fault := c.admitListen(f); fault != nil {
		return func() { send.answer(f.id, nil, fault) }, nil
	}
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.unhook = context.AfterFunc(c.ctx, func() { k.cancel(errEnding) })
	c.calls[f.key] = k
	c.listens++
	c.running++
	k.work++
	return func() { k.listen(ctx) }, k
}

// admitListen counts a subscriptions/listen among those of all, or says why not. It is called with mu held.
func (c *Conn) admitListen(f frame) *Fault {
	if c.ctx.Err() != nil {
		return faultf(codeEnding, "%s: the server is ending", f.method)
	}
	if c.listens >= maxListens {
		return faultf(codeBusy, "busy: %d subscriptions of this connection are open; cancel one and try again", c.listens)
	}
	switch full := c.server.listens.enter(c.who.Owner); {
	case full == nil:
		return nil
	case full.own:
		return faultf(codeBusy, "busy: the subscriptions that are open, %s, are its share; cancel one and try again", full)
	default:
		return faultf(codeBusy, "busy: the subscriptions that are open, %s, are the most there may be; try again later", full)
	}
}

// listen tells what the client asked for until one of the two has enough.
func (k *call) listen(ctx context.Context) {
	s := k.conn.server
	defer func() {
		k.unhook()
		k.cancel(nil)
		s.listens.leave(k.conn.who.Owner)
		k.conn.fell(func(c *Conn) { c.listens-- })
		k.left()
	}()
	result, fault := s.dispatch(ctx, k) // the answer for its end
	ended, _ := result.(*mcp.SubscriptionsListenResult)
	if ended == nil {
		k.answer(nil, fault)
		return
	}
	k.frame.params, k.frame.id = nil, bytes.Clone(k.frame.id) // the message is let go of
	id := k.frame.id
	one := &watcher{owner: k.conn.who.Owner, deliver: func(what changes) error {
		what.list = what.list && k.allowed.ResourcesListChanged
		return what.each(id, func(method string, params any) error {
			k.notes.tell(method, params)
			return nil
		})
	}}
	one.busy = true // nothing goes out before the acknowledgement
	var honoured []string
	wanted := k.allowed.ResourceSubscriptions
	for _, uri := range wanted[:min(len(wanted), 2*maxSubscriptions)] { // each takes a look into the store
		observation, err := s.subscribable(one.owner, uri, true)
		if err != nil || observation != "" && one.subscribe(observation, uri) != nil {
			continue
		}
		honoured = append(honoured, uri)
	}
	k.allowed.ResourceSubscriptions = honoured
	if !k.allowed.IsEmpty() {
		s.kept.add(one)
		defer s.kept.remove(one)
	}
	k.notes.tell(mcp.MethodNotificationSubscriptionsAcknowledged, map[string]any{
		"_meta": map[string]any{mcp.MetaKeySubscriptionID: id}, "notifications": k.allowed,
	})
	if !k.allowed.IsEmpty() {
		one.mu.Lock()
		one.busy = false
		one.schedule()
		one.mu.Unlock()
		<-ctx.Done()
	}
	ended.EnsureResultMeta().SetSubscriptionID(id)
	k.answer(ended, nil)
}

// settleFilter leaves in allowed what this server can serve of what the request asks for.
func (s *Server) settleFilter(_ context.Context, k *call) (any, error) {
	var asked mcp.SubscriptionFilter
	if fault := k.frame.member("notifications", &asked); fault != nil {
		return nil, fault
	}
	if s.store != nil {
		k.allowed = mcp.SubscriptionFilter{ResourcesListChanged: asked.ResourcesListChanged, ResourceSubscriptions: asked.ResourceSubscriptions}
	}
	return &mcp.SubscriptionsListenResult{}, nil
}

// endListening ends every subscriptions/listen with its answer, before the connection goes.
func (c *Conn) endListening() {
	c.mu.Lock()
	for _, k := range c.calls {
		if k.listens {
			k.cancel(errEnding)
		}
	}
	c.mu.Unlock()
	moment, stop := context.WithTimeout(context.Background(), leaveTime)
	defer stop()
	c.wait(moment, func(c *Conn) int { return c.listens })
}
