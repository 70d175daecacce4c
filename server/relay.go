package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// Relay is another server, whose resources, templates, prompts and completions are passed on as they are.
type Relay interface {
	// Call sends a request. The error is a [*jsonrpc.Fault] if the server says so.
	Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// List returns the entries of all pages of a list, none if the server does not have that method.
	List(ctx context.Context, method, member string) ([]json.RawMessage, error)
}

// relayedLists are the lists that another server's entries are added to, with the member that has them.
var relayedLists = map[mcp.MCPMethod]string{
	mcp.MethodResourcesList:          "resources",
	mcp.MethodResourcesTemplatesList: "resourceTemplates",
	mcp.MethodPromptsList:            "prompts",
}

// isForeign reports whether a request is about something of the other server.
func (s *Server) isForeign(f jsonrpc.Frame) bool {
	if s.options.Relay == nil {
		return false
	}
	switch mcp.MCPMethod(f.Method) {
	case mcp.MethodResourcesRead:
		uri := f.StringOrEmpty("uri")
		return s.resource(uri) == nil &&
			!slices.ContainsFunc(s.offers.Templates, func(t Template) bool { return t.URITemplate.Regexp().MatchString(uri) })
	case mcp.MethodPromptsGet:
		_, unknown := s.prompt(f.StringOrEmpty("name"))
		return unknown != nil
	case mcp.MethodCompletionComplete:
		var ref struct{ Type, Name, URI string }
		if f.Param("ref", &ref) != nil {
			return false
		}
		if ref.Type == "ref/prompt" {
			_, unknown := s.prompt(ref.Name)
			return unknown != nil
		}
		return ref.Type == "ref/resource" && !slices.ContainsFunc(s.offers.Templates, func(t Template) bool {
			return t.URITemplate.Raw() == ref.URI
		})
	}
	return false
}

// relay passes a request on to the other server.
func (s *Server) relay(ctx context.Context, f jsonrpc.Frame) (any, error) {
	params := map[string]json.RawMessage{}
	for name, value := range f.Params {
		if name != "_meta" {
			params[name] = value
		}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	result, err := s.options.Relay.Call(ctx, f.Method, raw)
	if err != nil {
		return nil, err
	}
	return complete(f, result), nil
}

// complete returns another server's result for the era of a request.
func complete(f jsonrpc.Frame, result json.RawMessage) json.RawMessage {
	if !f.Stateless() || len(result) < 2 || strings.Contains(string(result), `"resultType"`) {
		return result
	}
	head := `{"resultType":"complete"`
	if rest := result[1:]; rest[0] != '}' {
		head += ","
	}
	return json.RawMessage(head + string(result[1:]))
}

// withRelayed adds the entries of the other server to the first page of a list.
func (s *Server) withRelayed(ctx context.Context, f jsonrpc.Frame, result any) (any, error) {
	member := relayedLists[mcp.MCPMethod(f.Method)]
	if s.options.Relay == nil || member == "" || f.StringOrEmpty("cursor") != "" {
		return result, nil
	}
	theirs, err := s.options.Relay.List(ctx, f.Method, member)
	if fault := (*jsonrpc.Fault)(nil); errors.As(err, &fault) || len(theirs) == 0 && err == nil {
		return result, nil // it has none, or does not say them
	}
	if err != nil {
		s.log.Warn("a list of an upstream server is left out", "method", f.Method, "cause", err)
		return result, nil
	}
	ours, err := json.Marshal(forEncoding(result))
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	var entries []json.RawMessage
	if err := errors.Join(json.Unmarshal(ours, &all), json.Unmarshal(all[member], &entries)); err != nil {
		return nil, err
	}
	list, err := json.Marshal(append(entries, theirs...))
	if err != nil {
		return nil, err
	}
	all[member] = list
	return all, nil
}
