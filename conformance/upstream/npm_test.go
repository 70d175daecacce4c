//go:build linux

package upstream_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nodeServer returns the command of a server of npm's packages. Where it is not installed the test is skipped by name;
// under CI it fails.
func nodeServer(t *testing.T, name string, args ...string) []string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("../npm/node_modules/@modelcontextprotocol", name, "dist", "index.js"))
	if err != nil {
		t.Fatal(err)
	}
	node, missing := exec.LookPath("node")
	if _, err := os.Stat(script); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s or node is not there: npm ci has not been run", name)
		}
		t.Skipf("%s or node is not there: run scripts/test, which installs it", name)
	}
	return append([]string{node, script}, args...)
}

// The tools of other people's servers are listed as they list them, but for the schema of results; small answers are
// the same bytes, and large ones are stored whole.
func TestNodeServers(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	type call struct{ tool, args string }
	for _, s := range []struct {
		command []string
		calls   []call
		large   int
	}{
		{nodeServer(t, "server-everything"), []call{
			{"echo", `{"message":"hi <b>"}`}, {"get-sum", `{"a":1,"b":2.50}`}, {"get-tiny-image", "{}"},
			{"get-structured-content", `{"location":"New York"}`}, {"get-resource-links", `{"count":3}`},
			{"get-annotated-message", `{"messageType":"error","includeImage":true}`},
			{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`}, {"get-sum", `{"a":"no number"}`},
		}, 0},
		{nodeServer(t, "server-filesystem", docs), []call{
			{"list_directory", `{"path":"` + docs + `"}`}, {"read_text_file", `{"path":"` + docs + `/SPEED.md"}`},
			{"read_text_file", `{"path":"/no/such/file"}`}, {"directory_tree", `{"path":"` + docs + `"}`},
			{"search_files", `{"path":"` + docs + `","pattern":"**/*.md"}`},
		}, 2},
		{nodeServer(t, "server-memory"), []call{{"search_nodes", `{"query":"nothing"}`}, {"read_graph", "{}"}}, 0},
	} {
		t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.json"))
		store := t.TempDir()
		direct := start(t, s.command...)
		words := wrapped(store, s.command...)
		at := slices.Index(words, "wrap")
		ours := start(t, slices.Concat(words[:at+1], []string{"--env", "MEMORY_FILE_PATH"}, words[at+1:])...)
		name := filepath.Base(filepath.Dir(filepath.Dir(s.command[1])))
		sameTools(t, name, direct.request("tools/list", "{}"), ours.request("tools/list", "{}"))
		large := 0
		for _, k := range s.calls {
			want, got := direct.call(k.tool, k.args), ours.call(k.tool, k.args)
			if got == want {
				continue
			}
			large++
			id := observation.FindString(got)
			stored, err := exec.CommandContext(t.Context(), binary, "--store", store, "observations", "cat", id).Output()
			if err != nil || !saysText(t, want, string(stored)) {
				t.Errorf("%s: %s %s: %v\n%.300s\nwant %.300s", name, k.tool, k.args, err, got, want)
			}
		}
		if large != s.large {
			t.Errorf("%s: %d answers were stored, want %d", name, large, s.large)
		}
		for method, member := range map[string]string{
			"resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts",
		} {
			var theirs, all map[string][]json.RawMessage
			_ = json.Unmarshal([]byte(direct.request(method, "{}")), &theirs) // an error has no such member
			if err := json.Unmarshal([]byte(ours.request(method, "{}")), &all); err != nil {
				t.Errorf("%s: %s: %v", name, method, err)
			}
			for _, one := range theirs[member] {
				if !slices.ContainsFunc(all[member], func(o json.RawMessage) bool { return string(o) == string(one) }) {
					t.Errorf("%s: %s lacks %s", name, method, one)
				}
			}
		}
	}
}

// sameTools compares the entries of two lists of tools, apart from our own tools and the schemas of results.
func sameTools(t *testing.T, name, direct, ours string) {
	t.Helper()
	var want, got struct{ Tools []map[string]any }
	if err := json.Unmarshal([]byte(direct), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(ours), &got); err != nil {
		t.Fatal(err)
	}
	for _, tool := range want.Tools {
		delete(tool, "outputSchema")
		text, _ := json.Marshal(tool) // it came as JSON
		same := func(o map[string]any) bool {
			b, _ := json.Marshal(o)
			return string(b) == string(text)
		}
		if !slices.ContainsFunc(got.Tools, same) {
			t.Errorf("%s: %v is not listed as it is", name, tool["name"])
		}
	}
}

// saysText reports whether a stored text is the text of a result, or its structured content.
func saysText(t *testing.T, result, stored string) bool {
	t.Helper()
	var r struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.Text)
	}
	return stored == strings.Join(texts, "\n") || stored == string(r.StructuredContent)
}

// What a server offers besides tools is read through us.
func TestNodeResources(t *testing.T) {
	command := nodeServer(t, "server-everything")
	direct, ours := start(t, command...), start(t, wrapped(t.TempDir(), command...)...)
	for _, r := range []struct{ method, params string }{
		{"prompts/get", `{"name":"simple-prompt"}`},
		{"prompts/get", `{"name":"args-prompt","arguments":{"city":"Rome"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},` +
			`"argument":{"name":"department","value":"E"}}`},
		{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`},
		{"prompts/get", `{"name":"no-such-prompt"}`},
	} {
		want, got := direct.request(r.method, r.params), ours.request(r.method, r.params)
		if got != want {
			t.Errorf("%s %s: %.300s\nwant %.300s", r.method, r.params, got, want)
		}
	}
}
