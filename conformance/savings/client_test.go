package savings

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// client calls the tools of a built server over stdio.
type client struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	id      int
	offered any               // the instructions and the list of tools
	about   map[string]string // description by tool

	binary, store string
	heard         strings.Builder // all lines that the server wrote
	limits        map[string]any  // of _meta["funnel/limits"] of each call; nil: none
}

func startServer(t *testing.T, root string) *client { return startWith(t, "serve", "--root", root) }

// startWith starts the built program with a command, on a store of its own.
func startWith(t *testing.T, command ...string) *client {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	binary := built.Program(t, "cmd/mcp-funnel")
	s := startServing(t, exec.Command(binary, append([]string{"--store", store}, command...)...))
	s.binary, s.store = binary, store
	return s
}

// startServing starts a server.
func startServing(t *testing.T, cmd *exec.Cmd) *client {
	t.Helper()
	cmd.Stderr = os.Stderr
	in := expect.Value(cmd.StdinPipe())(t)
	out := expect.Value(cmd.StdoutPipe())(t)
	expect.Must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	s := &client{t: t, in: in, out: bufio.NewReader(out), about: map[string]string{}}
	var begun struct{ Instructions string }
	s.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "savings", "version": "1"}}, &begun)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var listed struct{ Tools []map[string]any }
	s.request("tools/list", map[string]any{}, &listed)
	offered := []any{begun.Instructions}
	for _, tool := range listed.Tools {
		offered = append(offered, tool)
		s.about[fmt.Sprint(tool["name"])] = fmt.Sprint(tool["description"])
	}
	s.offered = offered
	return s
}

// list returns the instructions and the list of tools, as the client got them.
func (s *client) list() string {
	text := expect.Value(json.Marshal(s.offered))(s.t)
	return string(text)
}

// request decodes the result of one request, and skips notifications.
func (s *client) request(method string, params, result any) {
	s.id++
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	fmt.Fprintf(s.in, "%s\n", text)
	for {
		line := expect.Value(s.out.ReadBytes('\n'))(s.t, method)
		s.heard.Write(line)
		var m struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID != s.id {
			continue
		}
		if m.Error != nil {
			s.t.Fatal(method, m.Error.Message)
		}
		expect.Must(s.t, json.Unmarshal(m.Result, result), method)
		return
	}
}

// call returns the text of a tool's answer.
func (s *client) call(c call) string {
	text, _ := s.try(c)
	return text
}

// try is [client.call], and reports whether the tool has failed.
func (s *client) try(c call) (text string, failed bool) {
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	params := map[string]any{"name": c.tool, "arguments": c.args}
	if s.limits != nil {
		params["_meta"] = map[string]any{"funnel/limits": s.limits}
	}
	s.request("tools/call", params, &result)
	var b strings.Builder
	for _, block := range result.Content {
		b.WriteString(block.Text + "\n")
	}
	return b.String(), result.IsError
}
