package upstream

import (
	"encoding/json"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// fitted returns a tool as it is listed: whole if there is room for its entry or if it was used, else with the first
// line of its description (100 bytes) and a schema that allows any arguments. The whole definition is approved.
func (s *Server) fitted(t tools.Tool, room *int) tools.Tool {
	size := s.options.Count(string(t.Listing))
	if size <= *room {
		*room -= size
		return t
	}
	line, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
	rest, _ := without(t.Listing, "inputSchema") // it was read before
	short, err := withMember(rest, "description", content.ClipEnd(line, 100))
	if err != nil || s.options.Count(string(short)) >= size {
		return t
	}
	if s.deferred[t.Name] = t.Listing; !s.used[t.Name] {
		t.Listing = append(short[:len(short)-1], `,"inputSchema":{"type":"object"}}`...)
	}
	return t
}

// use lists a tool whole from now on, and tells the client if it was listed short. It returns the whole entry; nil for
// a tool that never was.
func (s *Server) use(name string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.deferred[name]
	if whole != nil && !s.used[name] {
		s.used[name] = true
		s.build()
		s.client.Notify("notifications/tools/list_changed", nil)
	}
	return whole
}

// explain answers a call with wrong arguments with the whole entry of the tool. The answer has the form of a server's,
// because an error of ours is cut at 2,000 characters.
func explain(wrong error, whole json.RawMessage, in tools.Input, out tools.Output) error {
	raw, _ := content.PlainJSON(map[string]any{ // plain values
		"isError": true, "content": []any{map[string]string{"type": "text", "text": wrong.Error() + "\n" + string(whole)}},
	})
	return writeResult(raw, in, out, func(string) {})
}
