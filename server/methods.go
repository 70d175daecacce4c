package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/prompts"
)

// method is one that is served, and in which era of the protocol.
type method struct {
	era   era
	serve func(s *Server, ctx context.Context, k *call) (any, error)
}

type era int

const (
	everyEra     era = iota
	sessionsEra      // until 2025-11-25
	statelessEra     // since 2026-07-28
)

var methods = map[mcp.MCPMethod]method{
	mcp.MethodInitialize:             {sessionsEra, (*Server).initialize},
	mcp.MethodServerDiscover:         {statelessEra, (*Server).discover},
	mcp.MethodPing:                   {sessionsEra, (*Server).ping},
	mcp.MethodSetLogLevel:            {sessionsEra, (*Server).setLevel},
	mcp.MethodToolsList:              {everyEra, (*Server).listTools},
	mcp.MethodToolsCall:              {everyEra, (*Server).callTool},
	mcp.MethodPromptsList:            {everyEra, (*Server).listPrompts},
	mcp.MethodPromptsGet:             {everyEra, (*Server).getPrompt},
	mcp.MethodResourcesList:          {everyEra, (*Server).listResources},
	mcp.MethodResourcesTemplatesList: {everyEra, (*Server).listTemplates},
	mcp.MethodResourcesRead:          {everyEra, (*Server).readResource},
	mcp.MethodResourcesSubscribe:     {sessionsEra, (*Server).subscribe},
	mcp.MethodResourcesUnsubscribe:   {sessionsEra, (*Server).unsubscribe},
	mcp.MethodCompletionComplete:     {everyEra, (*Server).complete},
	mcp.MethodSubscriptionsListen:    {statelessEra, (*Server).settleFilter},
}

// dispatch serves the call: its result, or a fault fit to be shown. Panics end here.
func (s *Server) dispatch(ctx context.Context, k *call) (result any, fault *Fault) {
	f := k.frame
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic", "method", f.method, "tool", f.text("name"), "panic", p, "stack", string(debug.Stack()))
			k.notes.log(mcp.LoggingLevelError, "server", f.method+": internal error")
			result, fault = panicked(f)
		}
	}()
	result, err := s.serve(context.WithValue(ctx, callKey{}, k), k)
	if err != nil {
		fault = s.faultOf(f, err)
		asked := slices.Collect(maps.Values(f.params)) // which a fault may repeat, cut
		if text, n := s.mask.Echo(fault.Message, asked...); n > 0 {
			fault = &Fault{Code: fault.Code, Message: text, Data: fault.Data}
		}
		return nil, fault
	}
	if f.modern() {
		s.dress(f, result)
	}
	return result, nil
}

func (s *Server) serve(ctx context.Context, k *call) (any, error) {
	f := k.frame
	if f.modern() {
		if fault := k.declare(); fault != nil {
			return nil, fault
		}
	}
	m, known := methods[mcp.MCPMethod(f.method)]
	switch {
	case !known:
		return nil, faultf(mcp.METHOD_NOT_FOUND, "unknown method %s", quoted(f.method))
	case m.era == sessionsEra && f.modern():
		return nil, faultf(mcp.METHOD_NOT_FOUND, "%q was removed in protocol version %s", f.method, mcp.ProtocolVersion20260728)
	case m.era == statelessEra && !f.modern():
		return nil, faultf(mcp.METHOD_NOT_FOUND, "%q requires protocol version %s or later", f.method, mcp.ProtocolVersion20260728)
	}
	return m.serve(s, ctx, k)
}

// declare takes what a request of the stateless era has to say of its client.
func (k *call) declare() *Fault {
	if raw := k.frame.can; raw == nil || json.Unmarshal(raw, &k.declared) != nil || k.declared == nil {
		return faultf(mcp.INVALID_PARAMS, "missing or invalid _meta field %s", mcp.MetaKeyClientCapabilities)
	}
	if version := k.frame.protocol; !mcp.IsValidProtocolVersion(version) {
		fault := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
		return &Fault{Code: fault.Code, Message: content.ClipBytes(fault.Message, 2*maxEcho), Data: fault.Data}
	}
	return nil
}

// can is what the client of the call is able to do.
func (k *call) can() mcp.ClientCapabilities {
	if k.declared != nil {
		return *k.declared
	}
	return k.conn.session.said().can
}

// dress adds what the stateless era wants of a result: its type, whose it is, and for how long it may be kept.
func (s *Server) dress(f frame, result any) {
	r, is := result.(mcp.ResultMetadata)
	if !is {
		return
	}
	if r.GetResultType() == "" {
		r.SetResultType(mcp.ResultTypeComplete)
	}
	r.EnsureResultMeta().SetServerInfo(s.self)
	if c, is := result.(mcp.CacheHintSetter); is {
		c.SetCacheHints(0, mcp.CacheScopePrivate)
	}
}

// faultOf is what a client is told of an error: faults as they are, all else in short.
func (s *Server) faultOf(f frame, err error) *Fault {
	var own *Fault
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.DeadlineExceeded):
		return faultf(codeLate, "%s: no answer within %s", f.method, s.timeout)
	}
	return faultf(mcp.INTERNAL_ERROR, "%s", content.ClipBytes(err.Error(), 2*maxEcho))
}

func (s *Server) initialize(_ context.Context, k *call) (any, error) {
	var h hello
	fault := k.frame.member("protocolVersion", &h.protocol)
	if fault == nil {
		fault = k.frame.member("capabilities", &h.can)
	}
	if fault == nil {
		fault = k.frame.member("clientInfo", &h.client)
	}
	if fault != nil {
		return nil, fault
	}
	h.protocol = mcp.NegotiateLegacyVersion(h.protocol)
	k.conn.session.initialize(h)
	return &mcp.InitializeResult{
		ProtocolVersion: h.protocol, ServerInfo: s.self, Capabilities: s.capabilities(), Instructions: prompts.Instructions(),
	}, nil
}

func (s *Server) discover(context.Context, *call) (any, error) {
	return &mcp.DiscoverResult{
		SupportedVersions: mcp.ValidProtocolVersions, Capabilities: s.capabilities(), Instructions: prompts.Instructions(),
	}, nil
}

// capabilities are the same for every client. Neither the tools nor the prompts change.
func (s *Server) capabilities() mcp.ServerCapabilities {
	var c mcp.ServerCapabilities
	c.Logging, c.Completions = &struct{}{}, &struct{}{}
	c.Tools = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	c.Prompts = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{}
	c.Resources = &struct {
		Subscribe   bool `json:"subscribe,omitempty"`
		ListChanged bool `json:"listChanged,omitempty"`
	}{s.store != nil, s.store != nil}
	return c
}

func (s *Server) ping(context.Context, *call) (any, error) { return &mcp.EmptyResult{}, nil }

func (s *Server) setLevel(_ context.Context, k *call) (any, error) {
	text, fault := k.frame.str("level")
	if fault != nil {
		return nil, fault
	}
	level := mcp.LoggingLevel(text)
	if !slices.Contains(levels, level) {
		return nil, faultf(mcp.INVALID_PARAMS, "invalid logging level %s; levels: %s", quoted(text), levelNames())
	}
	k.conn.session.setLevel(level)
	return &mcp.EmptyResult{}, nil
}

var levels = []mcp.LoggingLevel{
	mcp.LoggingLevelDebug, mcp.LoggingLevelInfo, mcp.LoggingLevelNotice, mcp.LoggingLevelWarning,
	mcp.LoggingLevelError, mcp.LoggingLevelCritical, mcp.LoggingLevelAlert, mcp.LoggingLevelEmergency,
}

func levelNames() string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = string(l)
	}
	return strings.Join(names, ", ")
}

// noCursor refuses cursors for lists that are always answered whole.
func noCursor(f frame) *Fault {
	if cursor, fault := f.str("cursor"); fault != nil || cursor == "" {
		return fault
	}
	return unknownCursor(f.method)
}

func unknownCursor(method string) *Fault {
	return faultf(mcp.INVALID_PARAMS, "%s: unknown cursor; leave it out to begin again", method)
}
