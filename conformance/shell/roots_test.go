package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestRootsOfACommand checks that a command knows its roots. Where it names a file as tools do, the answer says where
// the file is; it says nothing of files outside the roots.
func TestRootsOfACommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	dir := t.TempDir()
	b.root, b.more = filepath.Join(dir, "src"), []string{filepath.Join(dir, "my-logs")}
	for path, text := range map[string]string{"src/a.go": "package a\n", "my-logs/access.log": "GET /\n"} {
		path = filepath.Join(dir, path)
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	src, logs := b.root, b.more[0]
	inLogs := "access.log is below the root my-logs: $ROOT_my_logs/access.log"
	for command, want := range map[string]string{
		`echo "$ROOTS"`:                     src + ":" + logs + "\n",
		`cat "$ROOT_my_logs/access.log"`:    "GET /\n",
		`echo "$ROOT_src"`:                  src + "\n",
		"cat src/a.go":                      "src is the root " + src + ": for a command it is $ROOT_src",
		"ls my-logs":                        "my-logs is the root " + logs,
		"cat access.log":                    inLogs,
		"cat access.log | wc -l":            inLogs,
		"python3 -c 'open(\"access.log\")'": inLogs,
	} {
		if strings.HasPrefix(command, "python3") {
			needs(t, "python3")
		}
		if text, _ := b.run(command); !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", command, text, want)
		}
	}
	outside := t.TempDir()
	expect.Must(t, os.WriteFile(filepath.Join(outside, "hidden.txt"), nil, 0o600))
	expect.Must(t, os.Symlink(outside, filepath.Join(logs, "link")))
	for _, command := range []string{
		"cat link/hidden.txt", "cat none.txt", "cat src/none.go", "echo 'no such file or directory: other'",
	} {
		if text, _ := b.run(command); strings.Contains(text, "ROOT") {
			t.Errorf("%s: %q", command, text)
		}
	}
	if text, _ := b.call(t.Context(), map[string]any{"command": "ls", "cwd": "none"}); !strings.Contains(
		text, "for commands, src is "+src+", my-logs is "+logs) {
		t.Errorf("cwd: %q", text)
	}
	b.more = nil
	if text, _ := b.run("cat src/a.go"); !strings.Contains(text, "src is the root "+src) {
		t.Errorf("one root: %q", text)
	}
}

// TestCondensedOutputIsShownWhole checks the limits of what run shows whole, and that settings replace them.
func TestCondensedOutputIsShownWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	lines := func(n, words int) string {
		return fmt.Sprintf("for i in $(seq %d); do echo \"$i%s\"; done", n, strings.Repeat(" words", words))
	}
	for _, c := range []struct {
		command string
		limits  funnel.Limits
		whole   bool
	}{
		{lines(56, 18), funnel.Limits{}, true}, // 6,159 characters, 1,064 tokens
		{lines(200, 1), funnel.Limits{}, true},
		{lines(201, 1), funnel.Limits{}, false},
		{lines(56, 40), funnel.Limits{}, true},  // over 1,500 tokens
		{lines(56, 50), funnel.Limits{}, false}, // over 2,500
		{lines(56, 18), funnel.Limits{LargeChars: 2000}, false},
		{lines(150, 5), funnel.Limits{LargeLines: 55}, false},
		{lines(201, 1), funnel.Limits{LargeLines: 300}, true},
	} {
		b.limits = c.limits
		text, answer := b.run(c.command)
		expect.Equal(t, answer.Receipts[0].Complete, c.whole, "%s with %+v: whole %t: %.200q", c.command, c.limits,
			!c.whole, text)
	}
}
