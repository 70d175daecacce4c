package investigate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
)

// peerOverStdio is the program as a client speaks to it.
type peerOverStdio struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	n   int
}

// ask sends a request and returns its result. A request of the server to the client fails the test: this tool makes
// none.
func (p *peerOverStdio) ask(method string, params object) (result object) {
	p.t.Helper()
	p.n++
	raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": p.n, "method": method, "params": params})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", raw); err != nil {
		p.t.Fatal(err)
	}
	for p.out.Scan() {
		var m struct {
			ID     any
			Method string
			Result object
			Error  any
		}
		if err := json.Unmarshal(p.out.Bytes(), &m); err != nil {
			p.t.Fatal(err)
		}
		switch {
		case m.ID != nil && m.Method != "":
			p.t.Errorf("the server asks its client: %s", m.Method)
		case m.ID == float64(p.n):
			if m.Error != nil {
				p.t.Fatalf("%s: %v", method, m.Error)
			}
			return m.Result
		}
	}
	p.t.Fatalf("%s: no answer: %v", method, p.out.Err())
	return nil
}

// TestWire looks at what a client sees of an investigation: the order in _meta, the prompt, the resource, completions.
func TestWire(t *testing.T) {
	r := newRunner(t, built.Program(t, "cmd/mcp-funnel"), project(t))
	c := r.command(t.Context(), "--toolsets", "core,investigation")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), c.Wait() }()
	p := &peerOverStdio{t: t, in: in, out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 4<<20)
	p.ask("initialize", object{
		"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "t", "version": "1"},
	})
	got := p.ask("tools/call", object{"name": "investigate", "arguments": object{"path": "db"}})
	order, _ := got["_meta"].(object)["funnel/order"].(object)
	dirs, _ := order["dirs"].(list)
	if order["step"] != "directory" || len(dirs) == 0 || dirs[0].(object)["tier"] != "default" {
		t.Fatalf("_meta: %v", got["_meta"])
	}
	inv, _ := order["investigation"].(string)
	id := strings.TrimPrefix(inv, "inv:")
	p.ask("tools/call", object{"name": "investigate", "arguments": object{"path": inv, "show": "report"}})
	report := fmt.Sprint(p.ask("resources/read", object{"uri": "investigation://" + id + "/report"}))
	has(t, report, "Package db keeps connections.", filepath.Base(r.root))
	args := object{"path": "db", "goal": "why?"}
	prompt := fmt.Sprint(p.ask("prompts/get", object{"name": "investigate", "arguments": args}))
	has(t, prompt, "The goal: why?")
	for _, ask := range []object{
		{"ref": object{"type": "ref/prompt", "name": "investigate"}, "argument": object{"name": "path", "value": "inv:"}},
		{
			"ref":      object{"type": "ref/resource", "uri": "investigation://{id}/report"},
			"argument": object{"name": "id", "value": ""},
		},
	} {
		if found := fmt.Sprint(p.ask("completion/complete", ask)); !strings.Contains(found, id) {
			t.Errorf("%v completes to %s", ask, found)
		}
	}
}
