package conformance

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestInvestigationOnTheWire looks at what a client sees of an investigation: the order in _meta, the prompt, the
// resource, completions. The server asks its client nothing.
func TestInvestigationOnTheWire(t *testing.T) {
	drivesOnly(t)
	root := filepath.Join(t.TempDir(), "shop")
	write(t, root+"/main.go", "// Command shop sells things.\npackage main\n\nfunc main() {}\n")
	write(t, root+"/db/pool.go", "// Package db keeps connections.\npackage db\n\ntype Pool struct{}\n")
	c := serveStdio(t, root, "--toolsets", "core,investigation")
	ask := func(method string, params object) string {
		t.Helper()
		m, err := c.ask(method, params)
		if err != nil || m.Error != nil {
			t.Fatalf("%s: %v %+v", method, err, m.Error)
		}
		return string(m.Result)
	}
	has := func(text string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %.2000s", want, text)
			}
		}
	}
	var r struct {
		Meta struct {
			Order struct {
				Investigation, Step string
				Dirs                []struct{ Tier string }
			} `json:"funnel/order"`
		} `json:"_meta"`
	}
	first := ask("tools/call", tool("investigate", object{"path": "db"}))
	order := &r.Meta.Order
	if err := json.Unmarshal([]byte(first), &r); err != nil || order.Step != "directory" || len(order.Dirs) == 0 ||
		order.Dirs[0].Tier != "default" {
		t.Fatalf("%v: %s", err, first)
	}
	id := strings.TrimPrefix(order.Investigation, "inv:")
	ask("tools/call", tool("investigate", object{"path": order.Investigation, "show": "report"}))
	has(ask("resources/read", object{"uri": "investigation://" + id + "/report"}), "Package db keeps connections.", "shop")
	args := object{"path": "db", "goal": "why?"}
	has(ask("prompts/get", object{"name": "investigate", "arguments": args}), "The goal: why?")
	for _, complete := range []object{
		{"ref": object{"type": "ref/prompt", "name": "investigate"}, "argument": object{"name": "path", "value": "inv:"}},
		{
			"ref":      object{"type": "ref/resource", "uri": "investigation://{id}/report"},
			"argument": object{"name": "id", "value": ""},
		},
	} {
		has(ask("completion/complete", complete), id)
	}
	for method := range c.toldOnItsOwn() {
		if !strings.HasPrefix(method, "notifications/") {
			t.Errorf("the server asks its client: %s", method)
		}
	}
}
