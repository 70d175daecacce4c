package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestCachesLast checks that what programs keep in ~/.cache is there for a later server, for the same root and client
// alone, and counts in the store.
func TestCachesLast(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	again := func() {
		b.shell.Close()
		b.shell = shell.New(shell.Options{Store: b.store, Dir: t.TempDir(), Hidden: []string{b.store.Dir()}})
		t.Cleanup(b.shell.Close)
		b.tool = b.shell.Run()
	}
	text, _ := b.run(`head -c 5000 /dev/zero > "$XDG_CACHE_HOME/x"; echo built > ~/.cache/y; echo $XDG_CACHE_HOME`)
	expect.Equal(t, strings.TrimSpace(text), "/home/run/.cache", text)
	again()
	if u, err := b.store.Usage(); err != nil || u.Bytes < 5000 {
		t.Errorf("%d bytes are counted, %v", u.Bytes, err)
	}
	if text, _ := b.run("cat ~/.cache/y"); strings.TrimSpace(text) != "built" {
		t.Errorf("a later server: %s", text)
	}
	if text, _ := b.run("ls " + b.store.Dir()); !strings.Contains(text, "No such file") {
		t.Errorf("the store is seen: %s", text)
	}
	root := b.root
	b.root = t.TempDir()
	if text, _ := b.run("ls ~/.cache"); strings.Contains(text, "y") {
		t.Errorf("another root: %s", text)
	}
	b.root, b.owner = root, "other"
	if text, _ := b.run("ls ~/.cache"); strings.Contains(text, "y") {
		t.Errorf("another client: %s", text)
	}
	b.owner = observations.Local
}

// TestAllowCache checks that a granted cache can be written to where it is and where programs look for it, and that the
// answer for one that is read-only names the grant.
func TestAllowCache(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	cache := filepath.Join(home, "go", "pkg", "mod")
	expect.Must(t, os.MkdirAll(cache, 0o700))
	b := newBench(t, shell.Options{AllowRead: []string{cache}})
	text, _ := b.run("touch " + cache + "/x")
	hint := cache + " is read-only for commands: the operator can let them write there with --allow-cache " + cache
	expect.Has(t, text, hint, "read-only")
	b = newBench(t, shell.Options{AllowCache: []string{cache}})
	text, _ = b.run("touch " + cache + "/x && ls ~/go/pkg/mod && touch ~/go/pkg/mod/y")
	expect.Equal(t, strings.TrimSpace(text), "x", "granted: %q", text)
	for _, name := range []string{"x", "y"} {
		expect.OK(t, expect.Err(os.Stat(filepath.Join(cache, name))))
	}
	// It does not count as scratch, however large it is.
	b = newBench(t, shell.Options{AllowCache: []string{cache}, ScratchMax: 20 << 20})
	text, _ = b.run("fallocate -l 100M " + cache + "/large; sleep 3; rm " + cache + "/large; echo survived")
	expect.Equal(t, strings.TrimSpace(text), "survived", "granted: %q", text)
	gone := []string{filepath.Join(home, "none")}
	b = newBench(t, shell.Options{AllowCache: gone, AllowRead: gone})
	if text, answer := b.run("echo runs"); answer.Failed || strings.TrimSpace(text) != "runs" {
		t.Errorf("directories that are not there: %s", text)
	}
}
