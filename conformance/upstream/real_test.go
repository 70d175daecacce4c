//go:build linux

package upstream_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// realCall is a call of a tool of a real server. {ROOT} in its arguments stands for the server's directory.
type realCall struct {
	Of      string // the server
	Tool    string
	Args    json.RawMessage
	Differs bool // from call to call: a time, a variable, a request that is not relayed, or a line that is marked
}

// realCalls returns the calls of a server, those of testdata/real_calls.ndjson.
func realCalls(t *testing.T, of string) []realCall {
	t.Helper()
	all := corpus.Rows[realCall](t, "real_calls.ndjson")
	return slices.DeleteFunc(all, func(k realCall) bool { return k.Of != of })
}

// realServer is a server of other people. {ROOT} in its command stands for a directory.
type realServer struct {
	name    string
	command []string
	calls   []realCall
	large   int  // results that are stored
	modern  bool // it speaks the stateless era
}

// tried compares a server with the same server wrapped: lists of tools, resources and prompts, and every tool called.
// Small answers are the same bytes. Large ones are stored whole, also after wrap was killed: a new process on the same
// store reads them.
func (s realServer) tried(t *testing.T) {
	store := t.TempDir()
	// Two directories with names of one length: each process has its own.
	roots := [2]string{filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")}
	var commands [2][]string
	for i, root := range roots {
		copyDocs(t, root)
		for _, word := range s.command {
			commands[i] = append(commands[i], strings.ReplaceAll(word, "{ROOT}", root))
		}
	}
	shown := func(side int, text string) string { return strings.ReplaceAll(text, roots[side], "{ROOT}") }
	open := start
	if s.modern {
		open = stateless
	}
	direct, ours := open(t, commands[0]...), start(t, wrapped(store, commands[1]...)...)
	theirs := direct.request("tools/list", "{}")
	listed := s.sameTools(t, theirs, ours.request("tools/list", "{}"))
	for _, name := range names(t, theirs) {
		if !slices.ContainsFunc(s.calls, func(k realCall) bool { return k.Tool == name }) {
			t.Errorf("%s: %s is not called", s.name, name)
		}
	}
	stored := map[string]string{} // results that went to the store, by observation
	for _, k := range s.calls {
		if listed[k.Tool] == "" {
			continue // it runs only as a task
		}
		args := func(side int) string {
			large := strings.Repeat(`line of it", "`, 3000)
			return strings.NewReplacer("{ROOT}", roots[side], "$LINES", large).Replace(string(k.Args))
		}
		want := shown(0, direct.call(k.Tool, args(0)))
		got := shown(1, ours.call(listed[k.Tool], args(1)))
		failed := func(answer string) bool {
			return strings.Contains(answer, `"isError":true`) || strings.Contains(answer, `"code":`)
		}
		id := observation.FindString(got)
		switch {
		case got == want:
		case k.Differs && failed(got) == failed(want):
		case id != "":
			stored[id] = want
		default:
			t.Errorf("%s: %s %s:\n%.600s\nwant %.600s", s.name, k.Tool, k.Args, got, want)
		}
	}
	expect.Equal(t, len(stored), s.large, "%s: answers were stored", s.name)
	for method, member := range map[string]string{
		"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
	} {
		var theirs, all map[string][]json.RawMessage
		_ = json.Unmarshal([]byte(direct.request(method, "{}")), &theirs) // an error has no such member
		expect.OK(t, json.Unmarshal([]byte(ours.request(method, "{}")), &all), "%s: %s", s.name, method)
		for _, one := range theirs[member] {
			if !slices.ContainsFunc(all[member], func(o json.RawMessage) bool { return string(o) == string(one) }) {
				t.Errorf("%s: %s lacks %s", s.name, method, one)
			}
		}
	}
	expect.Must(t, ours.cmd.Process.Kill())
	ours.end()
	again := start(t, wrapped(store, commands[1]...)...)
	for id, want := range stored {
		text, err := exec.CommandContext(t.Context(), binary, "--store", store, "observations", "cat", id).Output()
		if err != nil || !saysText(t, want, shown(1, string(text))) {
			t.Errorf("%s: %s: %v: %.300s\nwant %.300s", s.name, id, err, text, want)
		}
		if got := again.call("grep", `{"source":"`+id+`","pattern":"^"}`); strings.Contains(got, `"isError":true`) {
			t.Errorf("%s: %s after wrap was killed: %s", s.name, id, got)
		}
	}
}

// copyDocs copies our documentation into a new directory.
func copyDocs(t *testing.T, to string) {
	t.Helper()
	expect.Must(t, os.Mkdir(to, 0o700))
	pages, _ := filepath.Glob("../../docs/*.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(page)), text, 0o600)
		}
		expect.Must(t, err)
	}
}

// sameTools compares the entries of two lists of tools, apart from our own tools and the schemas of results. It returns
// the names by which the tools are listed here: one that has the name of ours gets the server's before it.
func (s realServer) sameTools(t *testing.T, direct, ours string) map[string]string {
	t.Helper()
	var want, got struct{ Tools []map[string]any }
	expect.Must(t, json.Unmarshal([]byte(direct), &want))
	expect.Must(t, json.Unmarshal([]byte(ours), &got))
	listed := map[string]string{}
	for _, tool := range want.Tools {
		delete(tool, "outputSchema")
		name := fmt.Sprint(tool["name"])
		for _, o := range got.Tools {
			if as := fmt.Sprint(o["name"]); as == name || strings.HasSuffix(as, "_"+name) {
				tool["name"] = as
				a, _ := json.Marshal(tool) // it came as JSON
				b, _ := json.Marshal(o)
				if string(a) == string(b) {
					listed[name] = as
				}
			}
		}
		execution, _ := tool["execution"].(map[string]any)
		if task := execution["taskSupport"] == "required"; task == (listed[name] != "") {
			t.Errorf("%s: %s is not listed as it is, or runs only as a task", s.name, name)
		}
	}
	return listed
}

// saysText reports whether a stored text is the text of a result, or its structured content.
func saysText(t *testing.T, result, stored string) bool {
	t.Helper()
	var r struct {
		Content           []json.RawMessage
		StructuredContent json.RawMessage
	}
	expect.Must(t, json.Unmarshal([]byte(result), &r))
	var texts []string
	for _, raw := range r.Content {
		var c struct{ Type, Text string }
		expect.Must(t, json.Unmarshal(raw, &c))
		if c.Type != "text" {
			c.Text = string(raw)
		}
		texts = append(texts, c.Text)
	}
	return stored == strings.Join(texts, "\n") || stored == string(r.StructuredContent)
}

// The tools of other people's servers are listed as they list them, but for the schema of results; small answers are
// the same bytes, and large ones are stored whole.
func TestNodeServers(t *testing.T) {
	inParallel(t)
	node := func(name string, args ...string) []string { return nodeServer(t, name, args...) }
	for _, s := range []realServer{
		{"everything", node("@modelcontextprotocol/server-everything"), realCalls(t, "node everything"), 0, false},
		{"filesystem", node("@modelcontextprotocol/server-filesystem", "{ROOT}"), realCalls(t, "node filesystem"), 4, false},
		// It and the one of the Go SDK keep a graph of knowledge.
		{"memory", slices.Concat([]string{"/usr/bin/env", "MEMORY_FILE_PATH={ROOT}/memory.json"},
			node("@modelcontextprotocol/server-memory")), realCalls(t, "memory"), 2, false},
		{"ripgrep", node("mcp-ripgrep"), realCalls(t, "node ripgrep"), 3, false},
	} {
		t.Run(s.name, s.tried)
	}
}

// TestGoServers is [TestNodeServers] for the examples of the official Go SDK, of the version that conformance/clients
// pins.
func TestGoServers(t *testing.T) {
	inParallel(t)
	promise.OrdinaryRun(t)
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/",
		"github.com/modelcontextprotocol/go-sdk/examples/server/everything",
		"github.com/modelcontextprotocol/go-sdk/examples/server/memory",
		"github.com/modelcontextprotocol/go-sdk/examples/server/toolschemas")
	build.Dir, build.Env = "../clients", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range []realServer{
		{"everything", []string{bin + "/everything"}, realCalls(t, "go everything"), 1, true},
		{"memory", []string{bin + "/memory", "-memory", "{ROOT}/memory.json"}, realCalls(t, "memory"), 2, true},
		{"toolschemas", []string{bin + "/toolschemas"}, realCalls(t, "go toolschemas"), 0, true},
	} {
		t.Run(s.name, s.tried)
	}
}
