package upstream

import (
	"encoding/json"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// maxLine is how many characters of its description a short entry of a tool has.
const maxLine = 100

// tokens counts the entry of a tool in the list; 0 if no tool is listed short.
func (o *Options) tokens(t tools.Tool) int {
	if o.Defer <= 0 || o.Count == nil || o.Observe {
		return 0
	}
	return o.Count(string(t.Listing))
}

// shortened returns a tool whose entry has the first line of its description, and a schema that allows any arguments.
// What is approved is the whole definition.
func shortened(t tools.Tool) (tools.Tool, error) {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
	if sentence, _, more := strings.Cut(line, ". "); more {
		line = sentence + "."
	}
	short, err := without(t.Listing, "inputSchema")
	if err == nil {
		short, err = withMember(short, "description", content.Clip(line, maxLine))
	}
	if err == nil {
		t.Listing = append(short[:len(short)-1], `,"inputSchema":{"type":"object"}}`...)
	}
	return t, err
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
	raw, err := content.PlainJSON(map[string]any{
		"isError": true, "content": []any{map[string]string{"type": "text", "text": wrong.Error() + "\n" + string(whole)}},
	})
	if err != nil {
		return err
	}
	return writeResult(raw, in, out, func(string) {})
}
