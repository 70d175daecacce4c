package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// write writes files below a directory.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a test's directory
			t.Fatal(err)
		}
		expect.Must(t, os.WriteFile(path, []byte("text of "+name), 0o600))
	}
}

// TestGuardedBelow tries to change what git and clients run in directories and repositories below a root. Without a
// sandbox the same attempts succeed.
func TestGuardedBelow(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	prepare := func(b *bench) {
		git(t, b.root, "init", "-q")
		git(t, b.root, "commit", "-q", "--allow-empty", "-m", "first")
		git(t, b.root, "worktree", "add", "-q", filepath.Join(b.root, "trees", "one"))
		write(t, b.root, "my.code-workspace", "a/b/.vscode/tasks.json", "a/b/.mcp.json", "a/x.code-workspace",
			"a/.claude/settings.json", "a/.cursor/mcp.json", "node_modules/p/.vscode/tasks.json")
		git(t, filepath.Join(b.root, "a"), "init", "-q", "sub")
	}
	attempts := []string{
		"echo x > a/b/.vscode/tasks.json", "echo x > a/b/.mcp.json", "echo x > a/x.code-workspace",
		"echo x > my.code-workspace",
		"echo x > a/.claude/settings.json", "echo x > a/.cursor/mcp.json", "echo x > a/sub/.git/hooks/pre-commit",
		"git -C a/sub config core.pager x", "echo gitdir: /tmp > trees/one/.git", "mv my.code-workspace w",
		"cd trees/one && git config core.fsmonitor x", "mv a z && echo x > z/sub/.git/hooks/pre-commit",
	}
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	prepare(b)
	for _, attempt := range attempts {
		if text, answer := b.run(attempt); answer.Receipts[0].Metadata["exit_code"] == 0 {
			t.Errorf("%s: %s", attempt, text)
		}
	}
	// The last attempt has renamed a directory: the next command must find what is below its new name.
	if text, answer := b.run("echo x > z/b/.mcp.json"); answer.Receipts[0].Metadata["exit_code"] == 0 {
		t.Errorf("after a rename: %s", text)
	}
	if text, _ := b.run("rm -r node_modules && cd trees/one && echo y > f && git add f && " + commit); text != "2\n\n" &&
		!strings.HasPrefix(text, "2\n") {
		t.Errorf("what is permitted failed: %s", text)
	}
	if text, _ := b.run("echo x > new.code-workspace"); !strings.Contains(
		text,
		"renamed to new.code-workspace.from-run",
	) {
		t.Errorf("a new workspace: %s", text)
	}
	control := newBench(t, shell.Options{Mode: sandbox.Off})
	for _, attempt := range attempts {
		control.root = t.TempDir()
		prepare(control)
		if text, answer := control.run(attempt); answer.Receipts[0].Metadata["exit_code"] != 0 {
			t.Errorf("control: %s: %s", attempt, text)
		}
	}
}

// TestHostileRepositories makes files .git that would keep the server busy: one that names a FIFO, and one of 64 GiB.
// The next command must run as ever.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	const hostile = "mkdir -p a/own b && mkfifo a/own/gitdir && echo 'gitdir: own' >a/.git && truncate -s 64G b/.git"
	if text, answer := b.run(hostile); answer.Receipts[0].Metadata["exit_code"] != 0 {
		t.Fatal(text)
	}
	if text, _ := b.run("echo as ever"); !strings.HasPrefix(text, "as ever") {
		t.Error(text)
	}
}

// TestMarkedStoresAreHidden checks that no command sees a directory that carries a store's marker.
func TestMarkedStoresAreHidden(t *testing.T) {
	t.Parallel()
	for _, allow := range [][]string{nil, everywhere} {
		b := newBench(t, shell.Options{AllowWrite: allow})
		write(t, b.root, "seen", "a/b/store/"+tree.StoreMarker, "a/b/store/token")
		if text, _ := b.run("cat seen a/b/store/token; ls -a a/b/store"); !strings.Contains(text, "text of seen") ||
			strings.Contains(text, "text of a/b") || strings.Contains(text, tree.StoreMarker) {
			t.Errorf("writing allowed in %q: %s", allow, text)
		}
		expect.Must(t, os.Remove(filepath.Join(b.root, "a/b/store", tree.StoreMarker)))
		if text, _ := b.run("cat a/b/store/token"); !strings.Contains(text, "text of a/b") {
			t.Errorf("the control failed: %s", text)
		}
	}
}

// TestSearchIsBounded checks that a root with too many directories is reported, once.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	for i := range 4100 {
		expect.Must(t, os.Mkdir(filepath.Join(b.root, fmt.Sprint(i)), 0o700))
	}
	first, _ := b.run("true")
	second, _ := b.run("true")
	if !strings.Contains(first, "only the first 4000 directories") || strings.Contains(second, "only the first") {
		t.Errorf("first: %s; second: %s", first, second)
	}
}
