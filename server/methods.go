package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// method is a served method and the era of the protocol to which it belongs.
type method struct {
	era   era
	serve func(s *Server, ctx context.Context, k *call) (any, error)
}

// era is a range of protocol versions. The stateless era has no initialize: each request declares its client.
type era int

const (
	everyEra     era = iota
	sessionsEra      // up to protocol 2025-11-25
	statelessEra     // from protocol 2026-07-28
)

var methods = map[mcp.MCPMethod]method{
	mcp.MethodInitialize:             {sessionsEra, (*Server).initialize},
	mcp.MethodServerDiscover:         {statelessEra, (*Server).discover},
	mcp.MethodPing:                   {sessionsEra, (*Server).ping},
	mcp.MethodSetLogLevel:            {sessionsEra, (*Server).setLevel},
	mcp.MethodToolsList:              {everyEra, in(toolArea.listTools)},
	mcp.MethodToolsCall:              {everyEra, in(toolArea.callTool)},
	mcp.MethodPromptsList:            {everyEra, in(promptArea.listPrompts)},
	mcp.MethodPromptsGet:             {everyEra, in(promptArea.getPrompt)},
	mcp.MethodResourcesList:          {everyEra, in(resourceArea.listResources)},
	mcp.MethodResourcesTemplatesList: {everyEra, in(resourceArea.listTemplates)},
	mcp.MethodResourcesRead:          {everyEra, in(resourceArea.readResource)},
	mcp.MethodResourcesSubscribe:     {sessionsEra, in(resourceArea.subscribe)},
	mcp.MethodResourcesUnsubscribe:   {sessionsEra, in(resourceArea.unsubscribe)},
	mcp.MethodCompletionComplete:     {everyEra, in(completionArea.complete)},
	mcp.MethodSubscriptionsListen:    {statelessEra, (*Server).listenFilter},
}

// These types have the methods of one area of the protocol each.
type (
	toolArea       struct{ *Server }
	promptArea     struct{ *Server }
	resourceArea   struct{ *Server }
	completionArea struct{ *Server }
)

// in returns the function that serves a method of an area.
func in[A ~struct{ *Server }](
	serve func(A, context.Context, *call) (any, error),
) func(*Server, context.Context, *call) (any, error) {
	return func(s *Server, ctx context.Context, k *call) (any, error) { return serve(A{s}, ctx, k) }
}

// dispatch serves the call and returns its result, or a fault whose secrets are masked. It recovers panics.
func (s *Server) dispatch(ctx context.Context, k *call) (result any, fault *jsonrpc.Fault) {
	f := k.frame
	defer k.leaveUpstreams()
	defer func() {
		if p := recover(); p != nil {
			s.options.Log.Error("panic", "method", f.Method, "tool", f.StringOrEmpty("name"), "panic", p,
				"stack", string(debug.Stack()))
			k.notes.Log(mcp.LoggingLevelError, "server", f.Method+": internal error")
			result, fault = panicResult(f)
		}
	}()
	result, err := s.serve(context.WithValue(ctx, callKey{}, k), k)
	if err != nil {
		fault = s.faultOf(f, err)
		asked := slices.Collect(maps.Values(f.Params)) // a fault may repeat parts of these
		if text, n := s.options.Mask.Echo(fault.Message, asked...); n > 0 {
			fault = &jsonrpc.Fault{Code: fault.Code, Message: text, Data: fault.Data}
		}
		return nil, fault
	}
	if f.Stateless() {
		s.addResultMeta(result)
	}
	if result, err = k.withUpstreamEntries(ctx, result); err != nil {
		return nil, s.faultOf(f, err)
	}
	return result, nil
}

func (s *Server) serve(ctx context.Context, k *call) (any, error) {
	f := k.frame
	if f.Stateless() {
		if fault := k.readDeclared(); fault != nil {
			return nil, fault
		}
	}
	m, known := methods[mcp.MCPMethod(f.Method)]
	switch {
	case !known:
		return nil, jsonrpc.Faultf(mcp.METHOD_NOT_FOUND, "unknown method %s", jsonrpc.Quoted(f.Method))
	case m.era == sessionsEra && f.Stateless():
		return nil, jsonrpc.Faultf(
			mcp.METHOD_NOT_FOUND, "%q was removed in protocol version %s", f.Method, mcp.ProtocolVersion20260728,
		)
	case m.era == statelessEra && !f.Stateless():
		return nil, jsonrpc.Faultf(
			mcp.METHOD_NOT_FOUND, "%q requires protocol version %s or later", f.Method, mcp.ProtocolVersion20260728,
		)
	}
	if r, ok := s.upstreamRequest(f); ok {
		return k.forward(ctx, r)
	}
	return m.serve(s, ctx, k)
}

// readDeclared decodes the client capabilities and checks the protocol version that a request of the stateless era
// must declare.
func (k *call) readDeclared() *jsonrpc.Fault {
	if raw := k.frame.Capabilities; raw == nil || json.Unmarshal(raw, &k.declared) != nil || k.declared == nil {
		return jsonrpc.BadParams("missing or invalid _meta field %s", mcp.MetaKeyClientCapabilities)
	}
	if version := k.frame.Protocol; !mcp.IsValidProtocolVersion(version) {
		fault := mcp.UnsupportedProtocolVersionError{
			Version: version, Supported: mcp.ValidProtocolVersions,
		}.JSONRPCError().Error
		return &jsonrpc.Fault{
			Code: fault.Code, Message: content.ClipBytes(fault.Message, 2*jsonrpc.MaxEcho), Data: fault.Data,
		}
	}
	return nil
}

// capabilities returns the capabilities of the client of the call.
func (k *call) capabilities() mcp.ClientCapabilities {
	if k.declared != nil {
		return *k.declared
	}
	return k.conn.agreed.Load().capabilities
}

// lifetime returns how long a client may keep a result: the lists of tools, prompts and templates change only with the
// server's program and settings.
func (s *Server) lifetime(result any) time.Duration {
	if s.options.Upstreams != nil { // lists of upstream servers may change at any time
		return 0
	}
	switch result.(type) {
	case *toolList, *mcp.ListPromptsResult, *mcp.ListResourceTemplatesResult:
		return time.Hour
	}
	return 0
}

// addResultMeta adds the members that the stateless era requires of a result: its type, the server's name, and how long
// clients may keep it.
func (s *Server) addResultMeta(result any) {
	r, is := result.(mcp.ResultMetadata)
	if !is {
		return
	}
	if r.GetResultType() == "" {
		r.SetResultType(mcp.ResultTypeComplete)
	}
	r.EnsureResultMeta().SetServerInfo(s.self)
	s.nameReplica(r)
	if c, is := result.(mcp.CacheHintSetter); is {
		c.SetCacheHints(s.lifetime(result).Milliseconds(), mcp.CacheScopePrivate)
	}
}

// nameReplica adds the replica's name to _meta.
func (s *Server) nameReplica(r mcp.ResultMetadata) {
	if s.options.Replica != "" && !s.observes() {
		r.EnsureResultMeta().SetMetaField(replicaMetaKey, s.options.Replica)
	}
}

// faultOf converts an error into a fault: a fault is unchanged, and the text of another error is cut to 400 bytes.
func (s *Server) faultOf(f jsonrpc.Frame, err error) *jsonrpc.Fault {
	var own *jsonrpc.Fault
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.DeadlineExceeded):
		return jsonrpc.Faultf(jsonrpc.CodeLate, "%s: no answer within %s", f.Method, s.options.CallTimeout)
	}
	return jsonrpc.Faultf(mcp.INTERNAL_ERROR, "%s", content.ClipBytes(err.Error(), 2*jsonrpc.MaxEcho))
}

func (s *Server) initialize(ctx context.Context, k *call) (any, error) {
	var h handshake
	if fault := cmp.Or(
		k.frame.Param("protocolVersion", &h.protocol), k.frame.Param("capabilities", &h.capabilities),
		k.frame.Param("clientInfo", &h.client),
	); fault != nil {
		return nil, fault
	}
	h.protocol, h.raw = mcp.NegotiateLegacyVersion(h.protocol), bytes.Clone(k.frame.Params["capabilities"])
	k.conn.agree(&h)
	text, err := s.instructions(ctx, k)
	result := &mcp.InitializeResult{
		ProtocolVersion: h.protocol, ServerInfo: s.self, Capabilities: s.capabilities(), Instructions: text,
	}
	s.nameReplica(result)
	return result, err
}

func (s *Server) discover(ctx context.Context, k *call) (any, error) {
	text, err := s.instructions(ctx, k)
	return &mcp.DiscoverResult{
		SupportedVersions: mcp.ValidProtocolVersions, Capabilities: s.capabilities(), Instructions: text,
	}, err
}

// ownInstructions returns our own instructions.
func (s *Server) ownInstructions(ctx context.Context, k *call) string {
	names := ""
	if !k.conn.roots.declared() && ctx.Value(grantKey{}) == nil {
		names = s.options.Sources(k.conn.account).RootNames()
	}
	return prompts.Instructions(names)
}

// instructions returns the server's instructions, with the names of its roots if there are several, but not if the
// token, or the client's roots, which are not known yet, will narrow them. The instructions of upstream servers follow;
// it is an error if none of these can be started.
func (s *Server) instructions(ctx context.Context, k *call) (string, error) {
	text := s.ownInstructions(ctx, k)
	up, err := k.upstreams()
	if up == nil || err != nil {
		return text, err
	}
	more, err := up.Instructions(ctx)
	switch more = s.sanitize(more, false); {
	case s.observes():
		text = more
	case more != "":
		text += "\n\n" + more
	}
	return text, err
}

// capabilities returns the server's capabilities, which are the same for every client. Our own tools and prompts never
// change.
func (s *Server) capabilities() mcp.ServerCapabilities {
	var c mcp.ServerCapabilities
	changing := s.options.Upstreams != nil
	c.Logging, c.Completions = &struct{}{}, &struct{}{}
	c.Tools = &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{changing}
	c.Prompts = c.Tools
	c.Resources = &struct {
		Subscribe   bool `json:"subscribe,omitempty"`
		ListChanged bool `json:"listChanged,omitempty"`
	}{s.options.Store != nil || changing, s.options.Store != nil || changing}
	return c
}

func (s *Server) ping(context.Context, *call) (any, error) { return &mcp.EmptyResult{}, nil }

func (s *Server) setLevel(ctx context.Context, k *call) (any, error) {
	text, fault := k.frame.StringParam("level")
	if fault != nil {
		return nil, fault
	}
	if !slices.Contains(levels, text) {
		return nil, jsonrpc.BadParams(
			"invalid logging level %s; levels: %s", jsonrpc.Quoted(text), strings.Join(levels, ", "))
	}
	k.conn.logLevel.Store(new(mcp.LoggingLevel(text)))
	if up := k.conn.server.openedUpstreams(k.conn.account); up != nil {
		up.SetLevel(ctx, text)
	}
	return &mcp.EmptyResult{}, nil
}

// levels are the values of [mcp.LoggingLevel], the least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
