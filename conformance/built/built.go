// Package built builds the programs that tests drive, each once: in a process, and in all of them where
// CONFORMANCE_PROGRAMS names a directory, as scripts/test does.
package built

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// dir has the programs of this process, unless another one has built them for all.
var dir = sync.OnceValues(func() (string, error) {
	if shared := os.Getenv("CONFORMANCE_PROGRAMS"); shared != "" {
		return shared, nil
	}
	return os.MkdirTemp("", "mcp-funnel-built-")
})

var (
	mu   sync.Mutex
	done = map[string]error{}
)

// Program returns the path of a program of this module, such as "cmd/mcp-funnel", built with the flags of a release.
func Program(t testing.TB, pkg string) string {
	t.Helper()
	path, err := Path(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Path is [Program] where there is no test yet.
func Path(pkg string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	to, err := dir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(to, filepath.Base(pkg))
	if _, known := done[pkg]; !known {
		done[pkg] = nil
		if _, err := os.Stat(path); err != nil {
			cmd := exec.CommandContext(context.Background(),
				"go", "build", "-trimpath", "-o", path, "github.com/mcp-funnel/mcp-funnel/"+pkg)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				done[pkg] = fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
			}
		}
	}
	return path, done[pkg]
}

// Main runs the tests of a package, and removes what was built for them.
func Main(m *testing.M) int {
	code := m.Run()
	if to, err := dir(); err == nil && os.Getenv("CONFORMANCE_PROGRAMS") == "" {
		_ = os.RemoveAll(to)
	}
	return code
}
