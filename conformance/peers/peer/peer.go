// Package peer finds programs that tests compare with (jq, rg, grep, sed, git, node), and Go's own source.
package peer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Find returns the path of a program. If the program is not installed, it skips the test, or fails it under CI, where
// all of them are installed.
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

// GoSource returns the directory of the Go toolchain's source: many real files, large and small, in a deep tree.
func GoSource(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), Find(t, "go"), "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}
