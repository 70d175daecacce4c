package write

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// TestWhatComesIntoARemovedTreeStays has a file come into a tree after the last look at it: it stays, under its name.
func TestWhatComesIntoARemovedTreeStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // it was only opened
	if err := os.MkdirAll(filepath.Join(dir, "tree", "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &call{Writer: New(Options{}), kept: "obs:aaaaaaaaaaaa"}
	still := func(_ fs.FileInfo, base string) bool {
		return os.WriteFile(filepath.Join(dir, base, "old", "new"), []byte("x"), 0o600) == nil
	}
	j := &journal{id: observations.RandomID(), records: records.InDir(t.TempDir())}
	err = c.take(&target{dir: root, base: "tree", shown: "tree"}, still, []string{"tree/", "tree/old/"}, j)
	if err == nil || !strings.Contains(err.Error(), "undo=obs:aaaaaaaaaaaa puts back all") {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "tree", "old", "new")); string(text) != "x" { //nolint:gosec // a test's file
		t.Errorf("the new file is lost: %v", err)
	}
	if all, _ := filepath.Glob(filepath.Join(dir, ".mcp-funnel-*")); len(all) > 0 || j.Temp != "" {
		t.Errorf("it is still called %q, %q is to be removed", all, j.Temp)
	}
}

// TestJournalNamesTheDirectory puts two files in two directories for one change: its record names the one where a temporary
// file may be.
func TestJournalNamesTheDirectory(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	w := New(Options{})
	j := &journal{id: observations.RandomID(), records: records.InDir(t.TempDir())}
	for _, name := range []string{"one", "two"} {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := tree.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close() //nolint:errcheck // it was only opened
		keep := func(string) error { return nil }
		err = w.put(t.Context(), &target{dir: root, base: "f", shown: "f"}, nil, newContent{text: strings.NewReader("x")}, j, keep)
		if err != nil || j.Dir != root.Dir() {
			t.Errorf("the record names %q for %q: %v", j.Dir, dir, err)
		}
	}
}
