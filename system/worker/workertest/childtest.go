// Package workertest lets tests run workers.
//
// It is imported from test files only.
package workertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// Race reports whether this binary has the race detector: then tests need [Main] to run workers.
const Race = worker.RaceLinked

// Main runs the tests, or a worker if the test binary was started as one. TestMain must exit with its result.
//
// A binary with the race detector cannot run within a worker's memory limit, nor in its own process namespace (it is
// linked with cgo). Then the workers of tests start from a second build of the same test binary, without either.
func Main(m *testing.M, workers map[string]worker.Worker) int {
	if ran, code := worker.Main(os.Args, workers); ran {
		return code
	}
	return WithPlainBuild(m, worker.Use)
}

// WithPlainBuild runs the tests. If this binary has the race detector, it calls use before, with the path of a second
// build of the same test binary that has neither the detector nor cgo.
func WithPlainBuild(m *testing.M, use func(path string)) int {
	if Race {
		dir, err := os.MkdirTemp("", "workertest")
		if err != nil {
			fmt.Fprintln(os.Stderr, "workertest:", err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user runs what is in it
			fmt.Fprintln(os.Stderr, "workertest:", err)
			return 1
		}
		path := filepath.Join(dir, "worker.test")
		build := exec.CommandContext(context.Background(), "go", "test", "-c", "-race=false", "-o", path, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "workertest: no build without the race detector: %v\n%s", err, out)
			return 1
		}
		use(path)
	}
	return m.Run()
}
