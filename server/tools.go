package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// receiptMetaKey is the member of _meta that holds the receipt of an answer: one object, or an array of several.
const receiptMetaKey = "funnel/receipt"

// metaPrefix begins the names of the members of _meta that tools send.
const metaPrefix = "funnel/"

func (s toolArea) addTools(all []tools.Tool) error {
	for _, t := range all {
		if err := validateTool(t); err != nil {
			return fmt.Errorf("server: tool %q: %w", t.Name, err)
		}
		if slices.Contains(s.names, t.Name) {
			return fmt.Errorf("server: duplicate tool %q", t.Name)
		}
		s.names = append(s.names, t.Name)
		s.offers.Tools = append(s.offers.Tools, RawTool{toolListing(t), s.handler(t)})
	}
	return nil
}

// validateTool returns an error if a tool cannot be listed.
func validateTool(t tools.Tool) error {
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case t.Name == "" || t.Title == "" || t.Description == "":
		return errors.New("name, title and description are required")
	case t.Run == nil:
		return errors.New("no function runs it")
	case json.Unmarshal(t.Schema, &schema) != nil || schema.Type != "object":
		return errors.New("the schema must have type object")
	}
	if bytes.Contains(t.Schema, []byte(headerWord)) {
		one := toolListing(t)
		return mcp.ValidateParamHeaderAnnotations(&one)
	}
	return nil
}

// toolListing converts a tool to its entry in tools/list. It sets the hints whose defaults are the worst: an
// unset one means destructive and open world.
func toolListing(t tools.Tool) mcp.Tool {
	out := mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, RawInputSchema: t.Schema}
	out.Annotations.ReadOnlyHint = new(t.Effect == tools.ReadOnly)
	out.Annotations.DestructiveHint = new(t.Effect == tools.Destructive)
	out.Annotations.OpenWorldHint = new(t.OpenWorld)
	return out
}

func (s toolArea) listTools(ctx context.Context, k *call) (any, error) {
	if fault := noCursor(k.frame); fault != nil {
		return nil, fault
	}
	list := &toolList{ListToolsResult: &mcp.ListToolsResult{}, Tools: make([]any, len(s.offers.Tools))}
	for i, t := range s.offers.Tools {
		list.Tools[i] = t.Tool
	}
	up, err := k.upstreams()
	if err != nil {
		return nil, err
	}
	if up != nil {
		listed, err := up.Tools(ctx)
		if err != nil {
			return nil, err
		}
		byServer := map[string][]any{}
		for _, t := range listed {
			list.Tools = append(list.Tools, s.masked(t.Listing))
			byServer[t.Server] = append(byServer[t.Server], t.Listing)
		}
		for name, all := range byServer {
			if _, before := k.conn.servers.LoadOrStore(name, true); !before {
				s.traceList(k, all, name, "")
			}
		}
	}
	k.conn.listed.Do(func() { s.traceList(k, list.Tools[:len(s.offers.Tools)], "", s.ownInstructions(ctx, k)) })
	if k.app() != nil {
		list.Tools = s.withApp(list.Tools)
	}
	return list, nil
}

// toolList is the result of tools/list: entries of an upstream server are sent as it wrote them.
type toolList struct {
	*mcp.ListToolsResult
	Tools []any `json:"tools"`
}

// traceList traces the tokens of tools and instructions as they are listed: our own, and in calls of their own those of
// each upstream server.
func (s toolArea) traceList(k *call, listed []any, server, instructions string) {
	text, err := json.Marshal(listed)
	if err != nil || len(listed) == 0 {
		return
	}
	args, _ := json.Marshal(map[string]string{"server": server}) // cannot fail
	r := funnel.Request{
		Tool: tools.Tool{Name: string(mcp.MethodToolsList), Server: server}, Args: args, Via: trace.ViaList, Uncut: true,
	}
	if k.addMeta(&r) == nil {
		s.options.Funnel.Show(r, string(text)+instructions)
	}
}

func (s toolArea) callTool(ctx context.Context, k *call) (any, error) {
	name, fault := k.frame.RequiredString("name")
	if fault != nil {
		return nil, fault
	}
	at := slices.IndexFunc(s.offers.Tools, func(t RawTool) bool { return t.Name == name })
	if at >= 0 {
		return s.offers.Tools[at].Call(ctx)
	}
	if name == AppTool && k.app() != nil {
		return s.showPage(ctx, k)
	}
	names := s.names
	if up, err := k.upstreams(); err != nil {
		return nil, err
	} else if up != nil {
		t, found, err := up.Tool(ctx, name)
		switch {
		case err != nil:
			return textResult(true, s.sanitize(content.ClipBytes(name+": "+err.Error(), 4<<10), false)), nil //nolint:nilerr // the answer says it
		case found:
			result, err := s.handler(t)(ctx)
			up.flush(ctx)
			return result, err
		}
		listed, _ := up.Tools(ctx) // they were just there
		for _, t := range listed {
			names = append(names[:len(names):len(names)], t.Name)
		}
	}
	return nil, jsonrpc.BadParams("unknown tool %s; tools: %s", jsonrpc.Quoted(name), strings.Join(names, ", "))
}

// isUpstreamTool reports whether a request is a call of an upstream server's tool.
func (s *Server) isUpstreamTool(f jsonrpc.Frame) bool {
	return s.options.Upstreams != nil && f.Method == string(mcp.MethodToolsCall) && f.StringOrEmpty("name") != AppTool &&
		!slices.ContainsFunc(s.offers.Tools, func(t RawTool) bool { return t.Name == f.StringOrEmpty("name") })
}

// observes reports whether the results of upstream servers are only measured.
func (s *Server) observes() bool { return s.options.Upstreams != nil && s.options.Upstreams.Observes() }

// withSources wraps a tool so that its call keeps its slot, and its narrowed sources stay open, until Run returns:
// the funnel may stop waiting before that.
func withSources(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, in tools.Input, out tools.Output) error {
		k := callOf(ctx)
		if !k.addWorker() {
			return context.Cause(ctx)
		}
		defer k.removeWorker()
		sources, done, err := k.narrowedSources(ctx, in.Sources)
		if err != nil {
			return err
		}
		defer done()
		in.Sources, in.Meta = sources, k.passedMeta()
		return run(ctx, in, out)
	}
	return t
}

// handler returns the function that runs a tools/call of the tool.
func (s toolArea) handler(t tools.Tool) func(context.Context) (any, error) {
	t = withSources(t)
	return func(ctx context.Context) (any, error) {
		k := callOf(ctx)
		args, fault := arguments(k.frame)
		if fault != nil {
			return nil, fault
		}
		r := funnel.Request{
			Tool: t, Args: args, Sources: s.options.Sources(k.conn.account), Ask: k.asker(ctx), Progress: k.notes.Progress,
		}
		if fault := k.addMeta(&r); fault != nil {
			return nil, fault
		}
		if t.Calls {
			caller, err := s.caller(k, r)
			if err != nil {
				return nil, err
			}
			r.Caller = caller
		}
		if s.observes() && t.Listing != nil {
			r.Via = trace.ViaObserved
		}
		var asked *roundTrips // in the stateless era
		if k.frame.Stateless() {
			if asked, fault = k.roundTrips(args); fault != nil {
				return nil, fault
			}
			r.Ask, r.Repeated = asked.nextReply, asked.repeated
		}
		answer, err := s.run(ctx, r)
		k.logOutcome(t.Name, answer)
		switch {
		case asked != nil && errors.Is(err, tools.ErrAsked):
			return asked.inputRequired(), nil
		case err == nil:
			if asked != nil && answer.Failed {
				if fault := asked.missingCapability(t.Name); fault != nil {
					return nil, fault
				}
			}
			if answer.Raw != nil {
				return k.upstreamResult(answer), nil
			}
			return callResult(t.Name, answer, k.notes.Messages), nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			k.notes.Log(mcp.LoggingLevelWarning, "server", fmt.Sprintf("%s: no answer within %s", t.Name, s.options.CallTimeout))
			result, _ := s.overdueResult(k.frame)
			return result.(*mcp.CallToolResult), nil
		case ctx.Err() != nil:
			return nil, jsonrpc.Faultf(jsonrpc.CodeEnding, "%s: stopped, %v", t.Name, ErrEnding)
		}
		return textResult(true, t.Name+": "+jsonrpc.Echo(err.Error())), nil
	}
}

// logOutcome reports timeouts and outputs that were not kept to the client's log.
func (k *call) logOutcome(tool string, a funnel.Answer) {
	for _, receipt := range a.Receipts {
		if receipt.Status == "timeout" {
			k.notes.Log(
				mcp.LoggingLevelWarning, "server", fmt.Sprintf("%s: stopped after %s", tool, k.conn.server.options.CallTimeout),
			)
		}
		if receipt.NotKept != "" {
			k.notes.Log(
				mcp.LoggingLevelWarning, "observations", fmt.Sprintf("%s: the output was not kept (%s)", tool, receipt.NotKept),
			)
		}
	}
}

// callResult converts the funnel's answer to an MCP result of text, images, audio and embedded resources. If sound is
// false, audio becomes a resource: protocols before 2025-03-26 have no audio content. It never sets structured
// content, since some clients then show nothing else.
func callResult(tool string, a funnel.Answer, sound bool) *mcp.CallToolResult {
	out := &mcp.CallToolResult{IsError: a.Failed, Content: make([]mcp.Content, 0, len(a.Blocks))}
	for _, b := range a.Blocks {
		switch {
		case b.MIME == "":
			out.Content = append(out.Content, mcp.NewTextContent(b.Text))
		case strings.HasPrefix(b.MIME, "image/"):
			out.Content = append(out.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(b.Data), b.MIME))
		case sound && strings.HasPrefix(b.MIME, "audio/"):
			out.Content = append(out.Content, mcp.NewAudioContent(base64.StdEncoding.EncodeToString(b.Data), b.MIME))
		default:
			out.Content = append(out.Content, mcp.NewEmbeddedResource(mcp.BlobResourceContents{
				URI: "attachment:" + b.Name, MIMEType: b.MIME, Blob: base64.StdEncoding.EncodeToString(b.Data),
			}))
		}
	}
	var receipt any
	switch len(a.Receipts) {
	case 0:
		return out
	case 1:
		receipt = a.Receipts[0]
	default:
		receipt = a.Receipts
	}
	out.Meta = &mcp.Meta{AdditionalFields: map[string]any{receiptMetaKey: receipt}}
	for name, value := range a.Meta {
		if !strings.HasPrefix(name, metaPrefix) { // a client would take it for ours
			out.Meta.AdditionalFields[name] = value
		}
	}
	if a.Extra != nil {
		if named, ok := a.Extra.(tools.MetaNamed); ok {
			tool = named.MetaName()
		}
		out.Meta.AdditionalFields[metaPrefix+tool] = a.Extra
	}
	return out
}

// textResult returns a result of one text.
func textResult(failed bool, text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: failed, Content: []mcp.Content{mcp.NewTextContent(text)}}
}

// The functions below answer a call that has no result of its own.

func busyResult(f jsonrpc.Frame, fault *jsonrpc.Fault) (any, *jsonrpc.Fault) {
	if fault.Code != jsonrpc.CodeBusy {
		return nil, fault
	}
	return failure(f, fault.Message, fault)
}

func (s *Server) overdueResult(f jsonrpc.Frame) (any, *jsonrpc.Fault) {
	fault := jsonrpc.Faultf(jsonrpc.CodeLate, "%s: no answer within %s", jsonrpc.Echo(f.Method), s.options.CallTimeout)
	return failure(f, fmt.Sprintf("%s: no answer within %s, the call was stopped; narrow the call",
		jsonrpc.Echo(f.StringOrEmpty("name")), s.options.CallTimeout), fault)
}

func panicResult(f jsonrpc.Frame) (any, *jsonrpc.Fault) {
	return failure(
		f, jsonrpc.Echo(f.StringOrEmpty("name"))+": internal error, this call failed; other calls are not affected",
		jsonrpc.Faultf(mcp.INTERNAL_ERROR, "%s: internal error", jsonrpc.Echo(f.Method)))
}

// failure returns a failed result with this text for a tools/call, since the model sees the result and can act on it.
// For other methods it returns the fault.
func failure(f jsonrpc.Frame, text string, fault *jsonrpc.Fault) (any, *jsonrpc.Fault) {
	if f.Method != string(mcp.MethodToolsCall) {
		return nil, fault
	}
	out := textResult(true, text)
	if f.Stateless() { // addResultMeta does not see all of these results
		out.ResultType = mcp.ResultTypeComplete
	}
	return out, nil
}

// forEncoding converts a tool's result to a type that is encoded once and without HTML escapes: mcp-go's own
// MarshalJSON encodes it twice and escapes its text. It returns other results unchanged.
func forEncoding(result any) any {
	type bare mcp.CallToolResult // without its MarshalJSON
	if p, ok := result.(*mcp.GetPromptResult); ok && p.NeedsInput() {
		return mcp.InputRequiredResult{Result: p.Result, MultiRoundTripResult: p.MultiRoundTripResult}
	}
	r, ok := result.(*mcp.CallToolResult)
	switch {
	case ok && r.NeedsInput(): // it must have no content member, not even an empty one
		return mcp.InputRequiredResult{Result: r.Result, MultiRoundTripResult: r.MultiRoundTripResult}
	case ok && r.RawStructuredContent == nil && r.Meta != nil && r.Meta.ProgressToken == nil &&
		len(r.Meta.AdditionalFields) > 0:
		return struct {
			Meta map[string]any `json:"_meta"`
			*bare
		}{r.Meta.AdditionalFields, (*bare)(r)}
	case ok && r.RawStructuredContent == nil:
		return (*bare)(r)
	}
	return result
}
