package server

import (
	"context"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// subscribe handles resources/subscribe.
func (s resourceArea) subscribe(_ context.Context, k *call) (any, error) {
	uri, fault := s.subscriptionURI(k.frame)
	if fault != nil {
		return nil, fault
	}
	id, err := s.subscribable(k.conn.account.Owner, uri, false)
	if err != nil {
		return nil, err
	}
	if id != "" {
		err = k.conn.subscriber.subscribe(id, uri)
	}
	if err != nil {
		return nil, jsonrpc.BadParams("%s", err)
	}
	return &mcp.EmptyResult{}, nil
}

// unsubscribe handles resources/unsubscribe. It succeeds also if there is no such subscription.
func (s resourceArea) unsubscribe(_ context.Context, k *call) (any, error) {
	uri, fault := s.subscriptionURI(k.frame)
	if fault != nil {
		return nil, fault
	}
	if id, err := observations.ParseID(uri); err == nil {
		k.conn.subscriber.unsubscribe(id)
	}
	return &mcp.EmptyResult{}, nil
}

// subscriptionURI returns the URI in the request, or a fault if it is missing or there is no store.
func (s resourceArea) subscriptionURI(f jsonrpc.Frame) (uri string, fault *jsonrpc.Fault) {
	if s.options.Store == nil {
		return "", jsonrpc.Faultf(mcp.METHOD_NOT_FOUND, "resources subscribe not supported")
	}
	if uri, fault = f.StringParam("uri"); fault == nil && uri == "" {
		fault = jsonrpc.BadParams("uri is required")
	}
	return uri, fault
}

// subscribable returns the ID of the observation with this URI, or an error if the owner cannot subscribe to it.
// The ID is "" for other resources, which never change.
func (s resourceArea) subscribable(owner, uri string, modern bool) (observations.ID, error) {
	id, err := observations.ParseID(uri)
	if err != nil || s.options.Store == nil || !strings.HasPrefix(uri, observations.URIPrefix) {
		if s.resource(uri) != nil {
			return "", nil
		}
		return "", notFound(
			modern, "unknown resource %s; clients can subscribe to %s", jsonrpc.Quoted(uri), observations.URIPrefix+"{id}",
		)
	}
	if _, err := s.options.Store.Stat(owner, id); err != nil {
		return "", s.unreadable(modern, id, err)
	}
	return id, nil
}

// listenFilter handles subscriptions/listen: it stores in k.filter the requested notifications that this server
// sends.
func (s *Server) listenFilter(_ context.Context, k *call) (any, error) {
	var asked mcp.SubscriptionFilter
	if fault := k.frame.Param("notifications", &asked); fault != nil {
		return nil, fault
	}
	changing := s.options.Upstreams != nil
	if k.filter.ToolsListChanged, k.filter.PromptsListChanged = changing && asked.ToolsListChanged,
		changing && asked.PromptsListChanged; s.options.Store != nil || changing {
		k.filter.ResourcesListChanged, k.filter.ResourceSubscriptions = asked.ResourcesListChanged, asked.ResourceSubscriptions
	}
	return &mcp.SubscriptionsListenResult{}, nil
}
