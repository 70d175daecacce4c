//go:build linux

package upstream_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// nodeServer returns the command of a server of npm's packages. Where it is not installed the test is skipped by name;
// under CI it fails.
func nodeServer(t *testing.T, name string, args ...string) []string {
	t.Helper()
	script := expect.Value(filepath.Abs(filepath.Join("../npm/node_modules", name, "dist", "index.js")))(t)
	node, missing := exec.LookPath("node")
	if _, err := os.Stat(script); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s or node is not there: npm ci has not been run", name)
		}
		t.Skipf("%s or node is not there: run scripts/test, which installs it", name)
	}
	return append([]string{node, script}, args...)
}

// What a server offers besides tools is read through us.
func TestNodeResources(t *testing.T) {
	command := nodeServer(t, "@modelcontextprotocol/server-everything")
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
		expect.Equal(t, got, want, "%s %s", r.method, r.params)
	}
}
