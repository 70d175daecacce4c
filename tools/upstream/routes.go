package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// This file finds the server that a prompt or a resource is of.

// kinds are the lists besides tools: the member of a result that has the entries, and the member that names one.
var kinds = map[string]struct{ member, name string }{
	"resources/list":           {"resources", "uri"},
	"resources/templates/list": {"resourceTemplates", "uriTemplate"},
	"prompts/list":             {"prompts", "name"},
}

// List returns the entries of a list of all servers as they write them. One with a name or URI that is taken gets the
// name of its server before its own. A server that does not answer is left out.
func (s *Session) List(ctx context.Context, method string) (entries []json.RawMessage, member string) {
	kind := kinds[method]
	lists := make([][]json.RawMessage, len(s.servers))
	s.each(func(i int, one *Server) {
		var err error
		lists[i], err = one.entries(ctx, method, kind.member)
		var fault *jsonrpc.Fault // the server has no such list
		if err != nil && !errors.As(err, &fault) {
			s.warn(one, "a list is left out: "+method, err)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, list := range lists {
		for _, entry := range list {
			name := memberOf(entry, kind.name)
			listed := name
			if s.isTaken(method, name, s.servers[i]) {
				listed = s.servers[i].options.prefix(method) + name
				if again, err := withMember(entry, kind.name, listed); err == nil {
					entry = again
				}
			}
			if _, again, err := cleaned("", entry); err == nil && !s.group.common.Observe {
				entry = again
			}
			if r, taken := s.routes[method+" "+listed]; taken && r.server != s.servers[i] {
				s.warn(s.servers[i], "an entry of "+method+" is left out", fmt.Errorf("another server has %s", listed))
				continue
			}
			s.routes[method+" "+listed] = route{s.servers[i], name}
			entries = append(entries, entry)
		}
	}
	return entries, kind.member
}

// isTaken reports whether another server's entry, or a reserved prompt, has a name. The caller holds the lock.
func (s *Session) isTaken(method, name string, by *Server) bool {
	r, known := s.routes[method+" "+name]
	return known && r.server != by || method == "prompts/list" && slices.Contains(s.group.common.Reserved, name)
}

// Request is a request about something of a server that is no tool.
type Request struct {
	Method string
	Params json.RawMessage
	List   string      // the method that lists its subject
	Name   string      // the name or URI of its subject in that list
	Ask    tools.Asker // answers the server's questions; nil: Do returns them as the result
}

// Do sends a request to the server that lists or has named its subject, and returns the result as the server wrote it.
func (s *Session) Do(ctx context.Context, r Request) (json.RawMessage, error) {
	of := s.of(r)
	if len(of) == 0 && len(s.servers) > 1 { // the client has not listed it, or a template matches it
		s.List(ctx, r.List)
		if r.List == "resources/list" {
			s.List(ctx, "resources/templates/list")
		}
		of = s.of(r)
	}
	if len(of) > 1 {
		return nil, ambiguous(r, of)
	}
	if len(of) == 1 {
		if of[0].name != r.Name {
			var err error
			if r.Params, err = renamedIn(r, of[0].name); err != nil {
				return nil, err
			}
		}
		return of[0].server.do(ctx, r)
	}
	var result json.RawMessage
	var err error
	for _, one := range s.servers {
		asking, stop := ctx, context.CancelFunc(func() {})
		if len(of) > 0 { // one that hangs must not hold up the answer
			asking, stop = context.WithTimeout(ctx, listTime)
		}
		answer, failed := one.do(asking, r)
		stop()
		if failed != nil {
			err = failed
			continue
		}
		if result, of = answer, append(of, route{one, r.Name}); r.Method != "resources/read" {
			break
		}
	}
	switch len(of) {
	case 0:
		return nil, err
	case 1:
		return result, nil
	}
	return nil, ambiguous(r, of)
}

// ambiguous returns the error for a resource of which it is not known which server it is of.
func ambiguous(r Request, of []route) error {
	var names, forms []string
	for _, one := range of {
		names = append(names, one.server.options.Name)
		forms = append(forms, one.server.options.prefix(r.List)+one.name)
	}
	return jsonrpc.BadParams("%s is of the servers %s: name one of them, as in %s", jsonrpc.Echo(r.Name),
		strings.Join(names, " and "), jsonrpc.Echo(strings.Join(forms, " or ")))
}

// of returns where the subject of a request may be: at the server whose name its URI begins with, that lists it, or
// that named it in a result; otherwise where a template matches it.
func (s *Session) of(r Request) (all []route) {
	resource := r.List == "resources/list"
	for _, one := range s.servers {
		if name, ok := strings.CutPrefix(r.Name, one.options.prefix(r.List)); ok && r.List != "prompts/list" {
			if r.Method == "resources/subscribe" {
				s.mu.Lock()
				s.routes[r.List+" "+r.Name] = route{one, name} // for what it tells of it
				s.mu.Unlock()
			}
			return []route{{one, name}}
		}
		if resource && len(s.servers) > 1 && one.hasNamed(r.Name) {
			all = append(all, route{one, r.Name})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	to, known := s.routes[r.List+" "+r.Name]
	if known && !slices.Contains(all, to) {
		all = append(all, to)
	}
	for listed, to := range s.routes {
		template, ok := strings.CutPrefix(listed, "resources/templates/list ")
		at := route{to.server, r.Name}
		if ok && resource && !known && template == to.name && matches(template, r.Name) && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// expression matches the parts of a URI template that stand for values.
var expression = content.Pattern(`\{[^{}]*\}`)

// matches reports whether a URI may be of a template.
func matches(template, uri string) bool {
	parts := expression().Split(template, -1)
	if len(parts) == 1 || !strings.HasPrefix(uri, parts[0]) || !strings.HasSuffix(uri, parts[len(parts)-1]) {
		return template == uri
	}
	uri = uri[len(parts[0]):]
	for _, part := range parts[1:] {
		at := strings.Index(uri, part)
		if at < 0 {
			return false
		}
		uri = uri[at+len(part):]
	}
	return true
}

// prefix returns what stands before a name that is taken: in a URI, a part of its scheme.
func (o Options) prefix(list string) string {
	if list == "prompts/list" {
		return o.Name + "_"
	}
	scheme := strings.ReplaceAll(o.Name, "_", ".")
	if scheme == "" || scheme[0] < 'a' {
		scheme = "s" + scheme // a scheme begins with a letter
	}
	return scheme + "+"
}

// asListed returns the params of a notification with the URI that the client knows.
func (s *Session) asListed(one *Server, params json.RawMessage) json.RawMessage {
	uri := memberOf(params, "uri")
	s.mu.Lock()
	listed := one.options.prefix("resources/list") + uri
	_, known := s.routes["resources/list "+listed]
	s.mu.Unlock()
	if again, err := withMember(params, "uri", listed); known && uri != "" && err == nil {
		return again
	}
	return params
}

// renamedIn returns the params of a request with another name of its subject.
func renamedIn(r Request, name string) (json.RawMessage, error) {
	member := kinds[r.List].name
	if r.Method != "completion/complete" {
		return withMember(r.Params, member, name)
	}
	var all map[string]json.RawMessage
	err := json.Unmarshal(r.Params, &all)
	if err == nil {
		all["ref"], err = withMember(all["ref"], member, name)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
