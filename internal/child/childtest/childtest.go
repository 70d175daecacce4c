// Package childtest lets tests run workers.
//
// It is imported from test files only.
package childtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/child"
)

// Race says that this is built with the race detector: then workers need [Main].
const Race = raceEnabled

// Main is what a TestMain calls, and exits with what it answers: it is a
// worker where the test binary was started as one, else it runs the tests.
//
// A binary built with the race detector cannot live under a worker's memory
// limit, nor in a process namespace of its own (it is linked with cgo). Then the tests' workers
// start from a second build of the same test binary, without either.
func Main(m *testing.M, workers map[string]child.Worker) int {
	if ran, code := child.Main(os.Args, workers); ran {
		return code
	}
	if raceEnabled {
		dir, err := os.MkdirTemp("", "childtest")
		if err != nil {
			fmt.Fprintln(os.Stderr, "childtest:", err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "worker.test")
		build := exec.CommandContext(context.Background(), "go", "test", "-c", "-race=false", "-o", path, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "childtest: no build without the race detector: %v\n%s", err, out)
			return 1
		}
		child.Use(path)
	}
	return m.Run()
}
