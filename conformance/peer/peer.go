// Package peer finds what tests compare with and read: jq, rg, grep, sed, git, node, and Go's own source.
//
// It installs nothing. It is imported from tests only.
package peer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Find is the path of a program. Where it is not installed the test is
// skipped by name; under CI, where every one of them is, it fails.
func Find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed: comparison with %s skipped", program, program)
	return ""
}

// GoSource is the directory of the Go toolchain's own source: many real files, large and small, in a deep tree.
func GoSource(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Find(t, "go"), "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}
