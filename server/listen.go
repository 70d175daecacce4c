package server

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// This file sends notifications of changed resources. In the sessions era the server notifies an initialized client
// of changes of the list and of the resources to which it subscribed, on the connection's own stream. In the
// stateless era the client selects notifications by subscriptions/listen, and gets them on the stream of that
// request, which stays open.

const (
	maxListens    = 16  // open subscriptions/listen of one connection
	maxAllListens = 512 // of all connections: each uses a goroutine and a stream
)

// startNotifications starts the notifications to a client of the sessions era; they end with the connection.
func (c *Conn) startNotifications() {
	c.subscriber.owner = c.account.Owner
	c.subscriber.send = func(what changes) error { return sendChanges(c, what) }
	c.server.storeWatch.add(&c.subscriber)
	context.AfterFunc(c.ctx, func() { c.server.storeWatch.remove(&c.subscriber) })
}

// sendChanges sends changes on the connection's own stream.
func sendChanges(c *Conn, what changes) error {
	return what.forEach(nil, func(method string, params any) error {
		message, err := jsonrpc.Notification(method, params)
		if err != nil {
			return err
		}
		return c.SendOwn(message)
	})
}

// forEach calls notify with one notification per change and stops at the first error. id is the subscription's id; nil
// in the sessions era.
func (c changes) forEach(id json.RawMessage, notify func(method string, params any) error) error {
	type params struct {
		Meta map[string]json.RawMessage `json:"_meta,omitempty"`
		URI  string                     `json:"uri,omitempty"`
	}
	var p params
	if id != nil {
		p.Meta = map[string]json.RawMessage{mcp.MetaKeySubscriptionID: id}
	}
	for _, uri := range c.gone {
		if err := notify(mcp.MethodNotificationResourceUpdated, params{p.Meta, uri}); err != nil {
			return err
		}
	}
	if !c.list {
		return nil
	}
	if id == nil {
		return notify(mcp.MethodNotificationResourcesListChanged, nil)
	}
	return notify(mcp.MethodNotificationResourcesListChanged, p)
}

// startListening registers a subscriptions/listen. It uses no call slot and has no deadline, and the end of the
// connection does not wait for it.
func (c *Conn) startListening(ctx context.Context, f jsonrpc.Frame, send jsonrpc.Send) (work, cancel func()) {
	k := c.newCall(f, send)
	k.isListen = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if fault := c.admitListen(f); fault != nil {
		return func() { send.Answer(f.ID, nil, fault) }, nil
	}
	ctx = c.register(ctx, k)
	c.listens++
	return func() { k.listen(ctx) }, k.abort
}

// admitListen acquires a slot for a subscriptions/listen, or returns a fault if a limit is reached. The caller must
// hold mu.
func (c *Conn) admitListen(f jsonrpc.Frame) *jsonrpc.Fault {
	if c.ctx.Err() != nil {
		return jsonrpc.Faultf(jsonrpc.CodeEnding, "%s: the server is ending", f.Method)
	}
	if c.listens >= maxListens {
		return jsonrpc.Faultf(
			jsonrpc.CodeBusy, "busy: %d subscriptions of this connection are open; cancel one and try again", c.listens,
		)
	}
	full := c.server.listens.Acquire(c.account.Owner, 1)
	if full == nil {
		return nil
	}
	next := "try again later"
	if full.PerOwner {
		next = "cancel one and try again"
	}
	return jsonrpc.Faultf(jsonrpc.CodeBusy, "busy: too many open subscriptions, %s; %s", full, next)
}

// listen sends the requested notifications until the client cancels the request or the connection ends.
func (k *call) listen(ctx context.Context) {
	s := k.conn.server
	defer func() {
		k.detach()
		k.cancel(nil)
		s.listens.Release(k.conn.account.Owner, 1)
		k.conn.updateCounts(func(c *Conn) { c.listens-- })
		k.removeWorker()
	}()
	result, fault := s.dispatch(ctx, k) // the answer, sent when listening ends
	ended, _ := result.(*mcp.SubscriptionsListenResult)
	if ended == nil {
		k.answer(nil, fault)
		return
	}
	k.frame.Params, k.frame.ID = nil, bytes.Clone(k.frame.ID) // frees the memory of the message
	id := k.frame.ID
	one := &subscriber{owner: k.conn.account.Owner, send: func(what changes) error {
		what.list = what.list && k.filter.ResourcesListChanged
		return what.forEach(id, func(method string, params any) error {
			k.notes.Notify(method, params)
			return nil
		})
	}}
	one.sending = true // blocks notifications until the acknowledgement is sent
	var accepted, upstreams []string
	wanted := k.filter.ResourceSubscriptions
	resources := resourceArea{s}
	for _, uri := range wanted[:min(len(wanted), 2*maxSubscriptions)] { // each needs a lookup in the store
		if s.options.Upstreams != nil && !strings.HasPrefix(uri, observations.URIPrefix) && resources.resource(uri) == nil {
			upstreams = append(upstreams, uri)
			continue
		}
		observation, err := resources.subscribable(one.owner, uri, true)
		if err != nil || observation != "" && one.subscribe(observation, uri) != nil {
			continue
		}
		accepted = append(accepted, uri)
	}
	subscribed, left := k.listenUpstreams(ctx, id, upstreams)
	defer k.leaveUpstreams()
	defer left()
	k.filter.ResourceSubscriptions = append(accepted, subscribed...)
	if !k.filter.IsEmpty() {
		s.storeWatch.add(one)
		defer s.storeWatch.remove(one)
	}
	k.notes.Notify(mcp.MethodNotificationSubscriptionsAcknowledged, map[string]any{
		"_meta": map[string]any{mcp.MetaKeySubscriptionID: id}, "notifications": k.filter,
	})
	if !k.filter.IsEmpty() {
		one.mu.Lock()
		one.sending = false
		one.schedule()
		one.mu.Unlock()
		<-ctx.Done()
	}
	ended.EnsureResultMeta().SetSubscriptionID(id)
	k.answer(ended, nil)
}

// EndListening ends and answers every subscriptions/listen; it waits up to [StopGrace]. A transport calls it before
// the connection ends.
func (c *Conn) EndListening() {
	c.mu.Lock()
	for _, k := range c.calls {
		if k.isListen {
			k.cancel(ErrEnding)
		}
	}
	c.mu.Unlock()
	moment, stop := context.WithTimeout(context.Background(), StopGrace)
	defer stop()
	c.waitUntil(moment, func(c *Conn) bool { return c.listens == 0 })
}

// ReserveForOthers limits each identity to its share of the slots for calls and subscriptions. It must be called if
// there is more than one identity.
func (s *Server) ReserveForOthers() {
	s.callLimit.ReserveForOthers()
	s.upstreamLimit.ReserveForOthers()
	s.listens.SetPerOwner(jsonrpc.OwnerShare(maxAllListens))
}
