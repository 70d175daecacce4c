package write_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// What is mounted in a tree lies elsewhere, and is not removed with it.
func TestMountsAreNotRemoved(t *testing.T) {
	c := newCaller(t)
	elsewhere := t.TempDir()
	expect.Must(t, os.WriteFile(filepath.Join(elsewhere, "f"), []byte("x"), 0o600))
	c.file("tree/mount/.keep", "")
	at := filepath.Join(c.dir, "tree/mount")
	if err := syscall.Mount(elsewhere, at, "", syscall.MS_BIND, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(at, 0) })
	text, _ := c.call("remove", args{"path": "tree", "tree": true})
	expect.Contains(t, text, "something is mounted in it")
	expect.Equal(t, c.text("tree/mount/f"), "x")
}
