package shell_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestAllowedDirectory lets commands write below one directory of a root: there, not beside it, and not where clients
// and git look for what they run. Where all of the root is allowed, the same writes beside it succeed.
func TestAllowedDirectory(t *testing.T) {
	t.Parallel()
	needs(t, "git")
	root := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	write(t, root, "sub/f", "sub/.vscode/tasks.json", "sub/a/.mcp.json", "other/f", "top")
	git(t, filepath.Join(root, "sub"), "init", "-q")
	git(t, filepath.Join(root, "sub"), "init", "-q", "a")
	git(t, filepath.Join(root, "other"), "init", "-q")
	beside := []string{
		"echo x > top", "echo x > new", "echo x > other/f", "rm other/f", "mv sub s", "ln sub/f other/link",
		"echo x > other/.git/description", "mkdir other/.git/x",
	}
	guarded := []string{
		"echo x > sub/.vscode/tasks.json", "echo x > sub/a/.mcp.json", "echo x > sub/.git/hooks/pre-commit",
		"git -C sub/a config core.pager x", "mv sub/.vscode sub/v",
	}
	inside := []string{
		"echo x > sub/f", "mkdir -p sub/new/er", "mv sub/f sub/g", "rm sub/g", "echo x > sub/.git/description",
	}
	b := newBench(t, shell.Options{AllowWrite: []string{filepath.Join(root, "sub")}})
	b.root = root
	tries := func(b *bench, commands []string, fails bool) {
		t.Helper()
		for _, command := range commands {
			text, answer := b.run(command)
			expect.Equal(t, answer.Receipts[0].Metadata["exit_code"] != 0, fails, "%s fails: %s", command, text)
		}
	}
	tries(b, beside, true)
	tries(b, guarded, true)
	tries(b, inside, false)
	text, _ := b.run("echo x > top")
	expect.Has(t, text, "commands may write below "+filepath.Join(root, "sub")+" alone (--allow-write)")
	text, _ = b.run("echo {} > sub/.envrc")
	expect.Has(t, text, "renamed to .envrc.from-run")
	expect.Fails(t, expect.Err(os.Lstat(filepath.Join(root, "sub/.envrc"))), "", "it was left")

	expect.Must(t, os.RemoveAll(filepath.Join(root, "sub"))) // by another program
	text, _ = b.run("cat top")
	expect.Has(t, text, "text of top")
	control := newBench(t, shell.Options{AllowWrite: everywhere})
	control.root = root
	write(t, root, "sub/f")
	tries(control, []string{
		"echo x > top", "echo x > new", "echo x > other/f", "ln sub/f other/link", "mkdir other/.git/x",
	}, false)
}

// TestAllowedOfSeveralRoots lets commands write below one of two roots, also by a directory above it.
func TestAllowedOfSeveralRoots(t *testing.T) {
	t.Parallel()
	dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	write(t, dir, "granted/one/f", "two/f")
	b := newBench(t, shell.Options{AllowWrite: []string{filepath.Join(dir, "granted")}})
	b.root, b.more = filepath.Join(dir, "granted/one"), []string{filepath.Join(dir, "two")}
	text, _ := b.run("echo one > f; (echo two > $ROOT_two/f) 2>/dev/null; cat f $ROOT_two/f")
	expect.Has(t, text, "one\ntext of two/f")
}
