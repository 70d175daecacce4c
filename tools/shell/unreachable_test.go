package shell_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestUnreachable checks that directories of PATH which a command does not see are named, and links in others that lead
// to such places.
func TestUnreachable(t *testing.T) {
	root, hidden := t.TempDir(), t.TempDir()
	outside := filepath.Join(root, "outside")
	for path, to := range map[string]string{outside: filepath.Join(hidden, "program"), root + "/inside": "/bin/sh"} {
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(hidden, "program"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/usr/bin:"+root+":"+hidden+":"+root)
	s := shell.New(shell.Options{Mode: sandbox.Required})
	t.Cleanup(s.Close)
	dirs, programs := s.Unreachable([]string{root})
	if !slices.Equal(dirs, []string{hidden}) || !slices.Contains(programs, outside) ||
		slices.Contains(programs, root+"/inside") {
		t.Errorf("directories %q, programs %q", dirs, programs)
	}
	s = shell.New(shell.Options{Mode: sandbox.Required, AllowRead: []string{hidden}})
	t.Cleanup(s.Close)
	if dirs, programs = s.Unreachable([]string{root}); len(dirs) > 0 || slices.Contains(programs, outside) {
		t.Errorf("granted: directories %q, programs %q", dirs, programs)
	}
}
