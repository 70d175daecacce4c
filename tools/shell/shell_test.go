package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShellWithoutBash checks what runs a command where no bash is, and what the description calls it.
func TestShellWithoutBash(t *testing.T) {
	dir := t.TempDir()
	notExecutable := filepath.Join(dir, "bash")
	for name, mode := range map[string]os.FileMode{"bash": 0o600, "busybox": 0o700, "dash": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if got := firstProgram(notExecutable, dir, filepath.Join(dir, "none")); got != "/bin/sh" {
		t.Errorf("the shell is %s", got)
	}
	for target, want := range map[string]string{"busybox": "sh", "dash": "dash"} {
		link := filepath.Join(t.TempDir(), "sh")
		if err := os.Symlink(filepath.Join(dir, target), link); err != nil {
			t.Fatal(err)
		}
		if got := New(Options{Shell: link}).Run().Description; !strings.HasPrefix(got, "Run "+want+", ") {
			t.Errorf("sh is %s: %q, want %s", target, got, want)
		}
	}
}
