package tree

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestParentInARace opens a directory while it is exchanged with a link to .git, again and again: what is opened is never
// .git, whatever the path was a moment before.
func TestParentInARace(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, dir := range []string{".git", "swap"} {
		expect.Must(t, os.Mkdir(filepath.Join(top, dir), 0o700))
	}
	expect.Must(t, os.Symlink(".git", filepath.Join(top, "link")))
	root := expect.Value(Open(top))(t)
	defer root.Close() //nolint:errcheck // it was only read
	git := expect.Value(os.Stat(filepath.Join(top, ".git")))(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, top+"/swap", unix.AT_FDCWD, top+"/link", unix.RENAME_EXCHANGE)
			}
		}
	}()
	opened := 0
	for range 20_000 {
		dir, _, err := root.Parent("swap/file", nil)
		if err != nil {
			continue
		}
		opened++
		if identOf(git).same(dir.id) {
			t.Error("it is .git")
		}
		_ = dir.Close()
		if t.Failed() {
			break
		}
	}
	close(stop)
	<-stopped
	if opened == 0 {
		t.Error("it was never opened")
	}
}
