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
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// receiptKey is where an answer's _meta holds its receipt: one object, or an array of several.
const receiptKey = "funnel/receipt"

func (s *Server) addTools(all []tools.Tool) error {
	for _, t := range all {
		if err := fit(t); err != nil {
			return fmt.Errorf("server: tool %q: %w", t.Name, err)
		}
		if slices.Contains(s.names, t.Name) {
			return fmt.Errorf("server: tool %q is there twice", t.Name)
		}
		s.names = append(s.names, t.Name)
		s.offered.Tools = append(s.offered.Tools, RawTool{listed(t), s.handler(t)})
	}
	return nil
}

// fit says what a tool lacks in order to be listed.
func fit(t tools.Tool) error {
	var schema struct {
		Type string `json:"type"`
	}
	switch {
	case t.Name == "" || t.Title == "" || t.Description == "":
		return errors.New("name, title and description are needed")
	case t.Run == nil:
		return errors.New("there is nothing to run")
	case json.Unmarshal(t.Schema, &schema) != nil || schema.Type != "object":
		return errors.New("its schema must be of type object")
	}
	if bytes.Contains(t.Schema, []byte(headerWord)) {
		one := listed(t)
		return mcp.ValidateParamHeaderAnnotations(&one)
	}
	return nil
}

// listed is a tool as clients see it. Every hint is set that means something for its effect: unset
// means destructive and open world.
func listed(t tools.Tool) mcp.Tool {
	out := mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, RawInputSchema: t.Schema}
	out.Annotations.ReadOnlyHint = new(t.Effect == tools.ReadOnly)
	out.Annotations.DestructiveHint = new(t.Effect == tools.Destructive)
	out.Annotations.OpenWorldHint = new(t.OpenWorld)
	if t.Effect != tools.ReadOnly {
		out.Annotations.IdempotentHint = new(false)
	}
	if len(t.Meta) > 0 {
		out.Meta = &mcp.Meta{AdditionalFields: t.Meta}
	}
	return out
}

func (s *Server) listTools(_ context.Context, k *call) (any, error) {
	if fault := noCursor(k.frame); fault != nil {
		return nil, fault
	}
	list := &mcp.ListToolsResult{Tools: make([]mcp.Tool, len(s.offered.Tools))}
	for i, t := range s.offered.Tools {
		list.Tools[i] = t.Tool
	}
	return list, nil
}

func (s *Server) callTool(ctx context.Context, k *call) (any, error) {
	name, fault := k.frame.needed("name")
	if fault != nil {
		return nil, fault
	}
	at := slices.IndexFunc(s.offered.Tools, func(t RawTool) bool { return t.Name == name })
	if at < 0 {
		return nil, faultf(mcp.INVALID_PARAMS, "unknown tool %s; tools: %s", quoted(name), strings.Join(s.names, ", "))
	}
	return s.offered.Tools[at].Call(ctx)
}

// held is a tool whose call keeps its place at the gate, and its sources open, while it runs, though the
// funnel may have stopped waiting for it.
func held(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, in tools.Input, out tools.Output) error {
		k := callOf(ctx)
		if !k.join() {
			return context.Cause(ctx)
		}
		defer k.left()
		sources, done, err := k.scope(ctx, in.Sources)
		if err != nil {
			return err
		}
		defer done()
		in.Sources = sources
		return run(ctx, in, out)
	}
	return t
}

// handler is what a tools/call of that tool does.
func (s *Server) handler(t tools.Tool) func(context.Context) (*mcp.CallToolResult, error) {
	t = held(t)
	return func(ctx context.Context) (*mcp.CallToolResult, error) {
		k := callOf(ctx)
		args, fault := arguments(k.frame)
		if fault != nil {
			return nil, fault
		}
		r := funnel.Request{
			Tool: t, Args: args, Who: k.conn.who, Sources: s.sources(k.conn.who), Ask: k.asker(ctx), Progress: k.notes.progress,
		}
		var asked *rounds // in the stateless era
		if k.frame.modern() {
			if asked, fault = k.roundsOf(args); fault != nil {
				return nil, fault
			}
			r.Ask = asked.ask
		}
		answer, err := s.run(ctx, r)
		k.note(t.Name, answer)
		switch {
		case asked != nil && errors.Is(err, tools.ErrAsked):
			return asked.required(), nil
		case err == nil:
			if asked != nil && answer.Failed {
				if fault := asked.refusal(t.Name); fault != nil {
					return nil, fault
				}
			}
			return shown(answer, k.notes.words), nil
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			k.notes.log(mcp.LoggingLevelWarning, "server", fmt.Sprintf("%s: no answer within %s", t.Name, s.timeout))
			return s.late(k.frame), nil
		case ctx.Err() != nil:
			return nil, faultf(codeEnding, "%s: stopped, %v", t.Name, errEnding)
		}
		return said(true, t.Name+": "+echo(err.Error())), nil
	}
}

// arguments are a tool's as they were sent; none are {}.
func arguments(f frame) (json.RawMessage, *Fault) {
	raw := f.params["arguments"]
	if raw == nil || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, faultf(mcp.INVALID_PARAMS, "%s: arguments must be an object, not %s", echo(f.text("name")), kindOf(raw))
	}
	return raw, nil
}

// note tells who is to know what became of a call beside its answer.
func (k *call) note(tool string, a funnel.Answer) {
	for _, receipt := range a.Receipts {
		if receipt.ObservationID != "" {
			k.conn.server.kept.made(k.conn.who.Owner, observations.ID(receipt.ObservationID))
		}
		if receipt.Status == "timeout" {
			k.notes.log(mcp.LoggingLevelWarning, "server", fmt.Sprintf("%s: stopped after %s", tool, k.conn.server.timeout))
		}
		if receipt.NotKept != "" {
			k.notes.log(mcp.LoggingLevelWarning, "observations", fmt.Sprintf("%s: the output was not kept (%s)", tool, receipt.NotKept))
		}
	}
}

// shown is the funnel's answer as MCP has it: text, and images, sound and other content beside it; sound
// is a kind of content of its own since 2025-03-26. Never structured content: there are clients that
// then show nothing else.
func shown(a funnel.Answer, sound bool) *mcp.CallToolResult {
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
	out.Meta = &mcp.Meta{AdditionalFields: map[string]any{receiptKey: receipt}}
	return out
}

// said is an answer of the server's own: one text.
func said(failed bool, text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: failed, Content: []mcp.Content{mcp.NewTextContent(text)}}
}

// The answers below stand in for a tool's. To a tools/call they are given as the tool's failure,
// which the model sees and can act on; to other methods as a fault.

func refused(f frame, fault *Fault) (any, *Fault) {
	if f.method == string(mcp.MethodToolsCall) && fault.Code == codeBusy {
		return instead(f, fault.Message), nil
	}
	return nil, fault
}

func (s *Server) overdue(f frame) (any, *Fault) {
	if f.method == string(mcp.MethodToolsCall) {
		return s.late(f), nil
	}
	return nil, faultf(codeLate, "%s: no answer within %s", echo(f.method), s.timeout)
}

func (s *Server) late(f frame) *mcp.CallToolResult {
	return instead(f, fmt.Sprintf("%s: no answer within %s, the call was stopped; ask for less, or narrow it", echo(f.text("name")), s.timeout))
}

func panicked(f frame) (any, *Fault) {
	if f.method == string(mcp.MethodToolsCall) {
		return instead(f, echo(f.text("name"))+": internal error, this call failed; other calls go on"), nil
	}
	return nil, faultf(mcp.INTERNAL_ERROR, "%s: internal error", echo(f.method))
}

// instead carries the type of result that the stateless era asks for, since not all of them are dressed.
func instead(f frame, text string) *mcp.CallToolResult {
	out := said(true, text)
	if f.modern() {
		out.ResultType = mcp.ResultTypeComplete
	}
	return out
}
