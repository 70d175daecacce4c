package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// git runs git on this machine, outside the sandbox.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{
		"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.invalid",
	}, args...)...)
	out, err := cmd.CombinedOutput()
	expect.Must(t, err, "git %v: %s", args, out)
	return string(out)
}

const commit = "git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m new && " +
	"git log --oneline | wc -l"

// TestCommits checks that git works where commands may write: in a repository, and in a worktree of one outside the
// root.
func TestCommits(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	git(t, b.root, "init", "-q")
	if text, _ := b.run("echo x > file && git add file && " + commit); !strings.Contains(text, "1\n") {
		t.Errorf("repository: %s", text)
	}
	main := b.root
	b.root = filepath.Join(t.TempDir(), "tree")
	git(t, main, "worktree", "add", "-q", b.root)
	if text, _ := b.run("echo y > file2 && git add file2 && " + commit); !strings.Contains(text, "2\n") {
		t.Errorf("worktree: %s", text)
	}
	if text, _ := b.run("ls " + main + "; cat " + filepath.Join(main, "file")); !strings.Contains(
		text,
		"No such file",
	) {
		t.Errorf("a worktree grants more of its repository than its git directory: %s", text)
	}
}

// TestForgedWorktree checks that a file .git alone grants no directory.
func TestForgedWorktree(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	other := t.TempDir()
	git(t, other, "init", "-q")
	dir := filepath.Join(other, ".git", "worktrees", "x")
	expect.Must(t, os.MkdirAll(dir, 0o700))
	expect.Must(t, os.WriteFile(filepath.Join(b.root, ".git"), []byte("gitdir: "+dir+"\n"), 0o600))
	if text, _ := b.run("ls " + other + "/.git"); !strings.Contains(text, "No such file") {
		t.Error(text)
	}
}

// TestGuarded tries to change what git and clients run. With the guards off the same attempts succeed, so that each
// failure is theirs.
func TestGuarded(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{AllowWrite: everywhere})
	git(t, b.root, "init", "-q")
	expect.Must(t, os.Mkdir(filepath.Join(b.root, ".vscode"), 0o700))
	for _, attempt := range []string{
		"echo x > .git/hooks/pre-commit", "git config core.hooksPath /tmp", "mv .git .g", "mv .git/hooks .git/h",
		"rm -rf .git/hooks", "echo x > .vscode/tasks.json", "mv .vscode v", "ln -sf /tmp .git/hooks", "chmod 777 .git/config",
		"touch .git/config", "rm .git/config",
	} {
		if text, answer := b.run(attempt); answer.Receipts[0].Metadata["exit_code"] == 0 {
			t.Errorf("%s: %s", attempt, text)
		}
	}
	control := newBench(t, shell.Options{AllowWrite: everywhere})
	if text, answer := control.run("mkdir -p x/.git/hooks && echo x > x/.git/hooks/pre-commit && mv x/.git x/g"); answer.Receipts[0].
		Metadata["exit_code"] != 0 {
		t.Errorf("the control failed: %s", text)
	}
	text, _ := b.run("mkdir .cursor && echo '{}' > .cursor/mcp.json && echo '{}' > .mcp.json")
	for _, name := range []string{".cursor", ".mcp.json"} {
		if _, err := os.Lstat(filepath.Join(b.root, name)); err == nil ||
			!strings.Contains(text, "renamed to "+name+".from-run") {
			t.Errorf("%s was left: %s", name, text)
		}
	}
}

// TestStoreIsHidden checks that a store below a root is not visible, and that everything else is.
func TestStoreIsHidden(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hidden := filepath.Join(root, "store")
	expect.Must(t, os.MkdirAll(hidden, 0o700))
	for _, name := range []string{"store/token", "seen"} {
		expect.Must(t, os.WriteFile(filepath.Join(root, name), []byte("text of "+name), 0o600))
	}
	b := newBench(t, shell.Options{Hidden: []string{hidden}})
	b.root = root
	if text, _ := b.run("cat seen store/token; ls store"); !strings.Contains(text, "text of seen") ||
		strings.Contains(text, "text of store") {
		t.Error(text)
	}
	control := newBench(t, shell.Options{})
	control.root = root
	if text, _ := control.run("cat store/token"); !strings.Contains(text, "text of store") {
		t.Errorf("the control failed: %s", text)
	}
}

// TestGuardsAtEveryEnd creates guarded names in calls that end in other ways, and by means that no mount can cover.
func TestGuardsAtEveryEnd(t *testing.T) {
	t.Parallel()
	left := func(t *testing.T, b *bench, name string) {
		t.Helper()
		expect.Fails(t, expect.Err(os.Lstat(filepath.Join(b.root, name))), "", "%s was left", name)
	}
	t.Run("time-out", func(t *testing.T) {
		b := newBench(t, shell.Options{AllowWrite: everywhere})
		b.call(t.Context(), map[string]any{"command": "echo x > .envrc; sleep 30", "timeout_s": 1})
		left(t, b, ".envrc")
	})
	t.Run("still running, then closed", func(t *testing.T) {
		b := newBench(t, shell.Options{AllowWrite: everywhere, Slice: 300 * time.Millisecond})
		if text, _ := b.run("echo x > .envrc; sleep 1; echo x > .mcp.json; sleep 30"); !strings.Contains(
			text,
			".envrc",
		) {
			t.Error(text)
		}
		left(t, b, ".envrc")
		time.Sleep(time.Second)
		b.shell.Close()
		left(t, b, ".mcp.json")
	})
	t.Run("git", func(t *testing.T) {
		b := newBench(t, shell.Options{AllowWrite: everywhere})
		b.run("git init -q; echo x > .git/hooks/pre-commit; git config core.fsmonitor x")
		left(t, b, ".git/hooks")
		left(t, b, ".git/config")
		b = newBench(t, shell.Options{AllowWrite: everywhere})
		git(t, b.root, "init", "-q")
		b.run("echo ../evil > .git/commondir")
		left(t, b, ".git/commondir")
		b.run("mv .git/HEAD .git/x; mkdir refs objects; echo 'ref: refs/heads/x' > HEAD; echo > config")
		left(t, b, "HEAD")
	})
}

// TestScratchIsBounded tries to exceed the size of the scratch directory.
func TestScratchIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{ScratchMax: 20 << 20})
	for _, command := range []string{
		"fallocate -l 100M /tmp/a; sleep 30; echo survived",
		"sleep 3; exec fallocate -l 100M /tmp/a & sleep 30; echo survived", // which takes no time that is counted
		"exec 3>/tmp/h; rm /tmp/h; head -c 100000000 /dev/zero >&3; sleep 30; echo survived",
		"mkdir /tmp/d; chmod 300 /tmp/d; head -c 100000000 /dev/zero > /tmp/d/q; sleep 30; echo survived",
	} {
		if text, _ := b.run(command); strings.Contains(text, "survived\n") ||
			!strings.Contains(text, "scratch directory") {
			t.Errorf("%s: %s", command, text)
		}
		if text, _ := b.run("chmod 700 /tmp/d; rm -rf /tmp/a /tmp/d && echo deleted"); !strings.Contains(
			text,
			"deleted",
		) {
			t.Errorf("files cannot be deleted: %s", text)
		}
	}
}

// TestScratchHasAccounts fills the scratch directory while another command runs, which goes on.
func TestScratchHasAccounts(t *testing.T) {
	t.Parallel()
	for _, fill := range []string{
		"head -c 100000000 /dev/zero > /tmp/a", "(head -c 100000000 /dev/zero > /tmp/a; sleep 60) & wait",
		"for i in 1 2 3 4 5 6 7 8 9; do head -c 11000000 /dev/zero > /tmp/a$i; done",
		"head -c 1000000000 /dev/zero > /tmp/a",
		"fallocate -l 100M /tmp/a; exit", "head -c 100000000 /dev/zero > /tmp/a; exit", // before they are measured
	} {
		b := newBench(t, shell.Options{ScratchMax: 20 << 20})
		other := make(chan string)
		go func() {
			text, _ := b.run("echo 1 > /tmp/ready; until [ -e /tmp/over ]; do sleep 0.1; echo tick; done; echo survived")
			other <- text
		}()
		text, _ := b.run("until [ -e /tmp/ready ]; do sleep 0.1; done; " + fill + "; sleep 50; echo filled")
		if !strings.HasSuffix(fill, "exit") && !strings.Contains(text, "scratch directory") {
			t.Errorf("%s: %s", fill, text)
		}
		if text, _ := b.run("sleep 2; echo 1 > /tmp/over; rm /tmp/a*; echo deleted"); !strings.Contains(text, "deleted") {
			t.Errorf("%s: files cannot be deleted: %s", fill, text)
		}
		expect.Has(t, <-other, "survived", "%s: a command that did not fill it was ended", fill)
	}
}
