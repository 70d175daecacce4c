package write_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
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

// TestNoReplacementOfOthersIsLost has another program replace a file by renames while it is edited: what it wrote last is
// there, or what an edit made of that.
func TestNoReplacementOfOthersIsLost(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	path, edited := c.file("f", "0 a\n"), make(chan bool)
	stop := make(chan struct{})
	go func() {
		defer close(edited)
		for _, old := range slices.Repeat([]string{" a\n", " b\n"}, 100_000) {
			_, failed := c.call("edit", args{"path": "f", "edits": one(old, map[string]string{" a\n": " b\n", " b\n": " a\n"}[old])})
			select {
			case edited <- failed:
			case <-stop:
				return
			}
		}
	}()
	lost, made := 0, 0
	writes := promise.Size(500, 20_000)
	for n := range writes {
		expect.Must(t, os.WriteFile(path+".new", fmt.Appendf(nil, "%d a\n", n), 0o600))
		expect.Must(t, os.Rename(path+".new", path))
		for range 2 { // the first one may have begun before
			if !<-edited {
				made++
			}
		}
		if !strings.HasPrefix(c.text("f"), fmt.Sprint(n, " ")) {
			lost++
		}
	}
	close(stop)
	for range edited { // until it has stopped
	}
	if lost > 0 || made == 0 {
		t.Errorf("%d of %d replacements are lost, beside %d edits", lost, writes, made)
	}
}

// TestATreeThatBecomesALink removes a tree while another program exchanges it with a link to .git: that stays whole.
func TestATreeThatBecomesALink(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	c.file(".git/config", "kept")
	expect.Must(t, os.Symlink(".git", filepath.Join(c.dir, "link")))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Microsecond):
				_ = unix.Renameat2(unix.AT_FDCWD, c.dir+"/tree", unix.AT_FDCWD, c.dir+"/link", unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range promise.Size(1000, 20_000) {
		_ = os.MkdirAll(filepath.Join(c.dir, "tree", "sub"), 0o700) // it was removed, or is a link
		_, _ = c.call("remove", args{"path": "tree", "tree": true})
		if c.text(".git/config") != "kept" {
			t.Fatal(".git was removed")
		}
		if _, err := os.Lstat(filepath.Join(c.dir, "link")); err != nil {
			_ = os.Symlink(".git", filepath.Join(c.dir, "link"))
		}
	}
	close(stop)
	<-stopped
}
