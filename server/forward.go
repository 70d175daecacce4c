package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// This file forwards requests to upstream servers, and sends what they answer.

// upstreamRequest converts a request about a resource or prompt of an upstream server. ok is false if it is about one
// of this server.
func (s *Server) upstreamRequest(f jsonrpc.Frame) (r upstream.Request, ok bool) {
	if s.options.Upstreams == nil {
		return r, false
	}
	r.Method = f.Method
	switch mcp.MCPMethod(f.Method) {
	case mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe, mcp.MethodResourcesUnsubscribe:
		r.List, r.Name = string(mcp.MethodResourcesList), f.StringOrEmpty("uri")
		return r, r.Name != "" && r.Name != appURI && resourceArea{s}.resource(r.Name) == nil &&
			!s.hasTemplate(func(t Template) bool { return t.URITemplate.Regexp().MatchString(r.Name) })
	case mcp.MethodPromptsGet:
		r.List, r.Name = string(mcp.MethodPromptsList), f.StringOrEmpty("name")
	case mcp.MethodCompletionComplete:
		var ref struct{ Type, Name, URI string }
		if f.Param("ref", &ref) != nil || ref.Type != "ref/prompt" && ref.Type != "ref/resource" {
			return r, false
		}
		if r.List, r.Name = string(mcp.MethodPromptsList), ref.Name; ref.Type == "ref/resource" {
			r.List, r.Name = string(mcp.MethodResourcesTemplatesList), ref.URI
			return r, !s.hasTemplate(func(t Template) bool { return t.URITemplate.Raw() == ref.URI })
		}
	default:
		return r, false
	}
	_, unknown := promptArea{s}.prompt(r.Name)
	return r, unknown != nil
}

func (s *Server) hasTemplate(is func(Template) bool) bool {
	return slices.ContainsFunc(s.offers.Templates, is)
}

// forward passes a request on to an upstream server.
func (k *call) forward(ctx context.Context, r upstream.Request) (any, error) {
	up, err := k.upstreams()
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

// masked masks the secrets in JSON of an upstream server. JSON without secrets stays as it was written.
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

// upstreamResult returns the result of an upstream server's tool as that wrote it, with the notes on it as further
// texts. It removes members of _meta whose names have our prefix: a client would take them for ours.
func (k *call) upstreamResult(a funnel.Answer) json.RawMessage {
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

// upstreamLists are the lists that upstream servers' entries are added to.
var upstreamLists = []mcp.MCPMethod{mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodPromptsList}

// withUpstreamEntries adds the entries of the upstream servers to the first page of a list.
func (k *call) withUpstreamEntries(ctx context.Context, result any) (any, error) {
	if !slices.Contains(upstreamLists, mcp.MCPMethod(k.frame.Method)) || k.frame.StringOrEmpty("cursor") != "" {
		return result, nil
	}
	s := k.conn.server
	up, err := k.upstreams()
	if up == nil || err != nil {
		return result, err
	}
	listed, member := up.List(ctx, k.frame.Method)
	if len(listed) == 0 {
		return result, nil
	}
	own, err := json.Marshal(forEncoding(result))
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	var entries []json.RawMessage
	if err := json.Unmarshal(own, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(all[member], &entries); err != nil {
		return nil, err
	}
	for _, entry := range listed {
		entries = append(entries, s.masked(entry))
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	all[member] = list
	return all, nil
}
