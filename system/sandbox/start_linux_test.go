//go:build amd64 || arm64

package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// TestSpare runs commands in processes that waited for them: also if one died meanwhile, or another kind is wanted.
// After the end none is left.
func TestSpare(t *testing.T) {
	stop := sandbox.KeepSpare()
	defer stop()
	run := func(s sandbox.Spec) {
		t.Helper()
		status, out := runCommand(t, s, "echo ok; ls /dev/fd | wc -l")
		if status.Exit != 0 || !strings.HasPrefix(out, "ok\n4\n") {
			t.Errorf("%+v %q", status, out)
		}
	}
	seen := map[int]bool{}
	for i := range 6 {
		run(sandbox.Spec{Net: i == 4})
		spare := waitForSpare(t)
		if seen[spare] {
			t.Errorf("process %d ran two commands", spare)
		}
		if seen[spare] = true; i == 2 {
			_ = syscall.Kill(spare, syscall.SIGKILL)
			waitForEnd(t, spare)
		}
	}
	spare := sandbox.SparePID()
	stop()
	waitForEnd(t, spare)
}

func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d has not ended", pid)
}

func waitForSpare(t *testing.T) int {
	t.Helper()
	for range 500 {
		if pid := sandbox.SparePID(); pid != 0 {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no process was kept ready")
	return 0
}

// TestSharedDirectory starts commands at once that share a directory in which their mounts lie. Each makes the missing
// names there, so they meet.
func TestSharedDirectory(t *testing.T) {
	root := t.TempDir()
	expect.Must(t, os.WriteFile(filepath.Join(root, "file"), []byte("here"), 0o600))
	const deep = "/tmp/a/b/c/d/e/f/g/h"
	for range 8 {
		shared := t.TempDir()
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				_, out := runCommand(t, sandbox.Spec{Mounts: []sandbox.Mount{
					{Source: shared, Target: "/tmp", Write: true}, {Source: root, Target: deep},
				}}, "cat "+deep+"/file")
				expect.Equal(t, out, "here")
			})
		}
		wg.Wait()
	}
}
