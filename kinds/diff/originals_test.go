package diff

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// original runs a program in a directory; diffs exit with 1 if there are differences.
func original(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(program + " is not installed")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HGRCPATH=", "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x", "HOME="+dir)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil && (failed.Len() > 0 || cmd.ProcessState.ExitCode() != 1) {
		t.Fatalf("%s %q: %v\n%s", program, args, err, failed.String())
	}
	return out.String()
}

func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// hostile are names that look like prefixes, separators and headers.
var hostile = []string{
	"main.c", "a/main.c", "b/main.c", "c/main.c", "i/main.c", "w/main.c", "o/main.c", "old/main.c", "new/main.c",
	"a/b/c/d", "docs/My Notes/read me.md", "x b/x", "a b/a b", "b/a/x b/a/x", "two  blanks", " leading", "trailing ",
	"ends in b", "x and y", "ümläut", "tab\tname", `quo"te`, `back\slash`, "new\nline", "it's", "dev/null", "x differ", "-r",
	"a -> b", "(nonexistent)", "1/2", "x/y/z/w/v/u/t", `"quoted"`, "diff --git a", "@@ -1 +1 @@",
}

// TestNamesAgreeWithGit compares names, states and counts with git's own, for every setting of prefixes: of files that
// are modified, added, deleted, moved, copied, empty, binary, and of those of which only the mode changes.
func TestNamesAgreeWithGit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string { return original(t, dir, "git", args...) }
	git("init", "-q")
	before, after := map[string]string{}, map[string]string{}
	body := func(name string) string { return name + "\n" + strings.Repeat("line of "+name+"\n", 12) }
	for _, name := range hostile {
		before["mod/"+name], after["mod/"+name] = body(name), body(name)+"-- x\n++ y\n"
		before[name], after[name] = body(name+"0"), "-- "+body(name+"0")
		after["add/"+name], before["del/"+name] = body(name+"1"), body(name+"2")
		after["emp/"+name], before["emp2/"+name] = "", ""
		before["bin/"+name], after["bin/"+name], after["bin2/"+name] = "\x00"+name, "\x00\x00"+name, "\x01\x00"+name
		before["mv/"+name], after["moved/to "+name] = body(name+"3"), body(name+"3")
		before["mv2/"+name], after["moved2/"+name] = body(name+"4"), body(name+"4")+"more\n"
		before["cp/"+name], after["cp/"+name], after["copy/"+name] = body(name+"5"), body(name+"5")+"x\n", body(name+"5")
		before["mode/"+name], after["mode/"+name] = body(name+"6"), body(name+"6")
	}
	writeTree(t, dir, before)
	git("add", "-A")
	git("commit", "-qm", "before")
	git("rm", "-rq", ".")
	writeTree(t, dir, after)
	for _, name := range hostile {
		if err := os.Chmod(filepath.Join(dir, "mode", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	for _, limit := range [][]string{nil, {"--no-renames"}, {"-M", "-C"}, {"-R"}} {
		args := append([]string{"diff", "--cached", "-l9999"}, limit...)
		want := gitsOwn(t, git, args)
		for _, form := range [][]string{
			{}, {"--no-prefix"}, {"--src-prefix=old/", "--dst-prefix=new/"}, {"--src-prefix=before/", "--dst-prefix=after/"},
			{"--src-prefix=x/y/", "--dst-prefix=z/"}, {"--dst-prefix="}, {"--binary"}, {"--color"}, {"-U0", "--full-index"},
			{"-c", "diff.mnemonicPrefix=true"}, {"-c", "core.quotePath=false"}, {"-c", "diff.noprefix=true"},
		} {
			a := slices.Concat(args, form)
			if len(form) > 0 && form[0] == "-c" {
				a = slices.Concat(form, args)
			}
			if diff := cmp.Diff(want, ours(t, git(a...), false)); diff != "" {
				t.Errorf("%q (-git +ours)\n%s", a, diff)
			}
		}
	}
	git("commit", "-qm", "after")
	for _, form := range []string{"--no-color", "--color"} {
		got := ours(t, git("log", "-p", "-1", form, "-l9999"), false)
		if diff := cmp.Diff(gitsOwn(t, git, []string{"diff", "HEAD~", "-l9999"}), got); diff != "" {
			t.Errorf("log %s (-git +ours)\n%s", form, diff)
		}
	}
}

// gitsOwn returns what --numstat and --name-status say: "status old→file +added −deleted".
func gitsOwn(t *testing.T, git func(...string) string, args []string) (lines []string) {
	t.Helper()
	numbers := strings.Split(git(append(args, "--numstat", "-z")...), "\x00")
	states := strings.Split(git(append(args, "--name-status", "-z")...), "\x00")
	for len(states) > 1 {
		n := strings.SplitN(numbers[0], "\t", 3)
		state, from, to := states[0][:1], states[1], states[1]
		states, numbers = states[2:], numbers[1:]
		if n[2] == "" { // old and new name follow
			to, states, numbers = states[0], states[1:], numbers[2:]
		}
		state = map[string]string{"M": "modified", "A": "added", "D": "deleted", "R": "renamed", "C": "added"}[state]
		if state == "added" && from == to {
			from = "null"
		}
		count := strings.NewReplacer("-", "null").Replace
		lines = append(lines, fmt.Sprintf("%s %s→%s +%s −%s", state, from, to, count(n[0]), count(n[1])))
	}
	slices.Sort(lines)
	return lines
}

// ours returns the records of a diff in the form of gitsOwn. cut says whether the diff must be reported as cut.
func ours(t *testing.T, text string, cut bool) (lines []string) {
	t.Helper()
	err := Objects(t.Context(), strings.NewReader(text), &bytes.Buffer{})
	if errors.As(err, new(*content.Remarks)) != cut {
		t.Errorf("cut %v: %v", cut, err)
	}
	for _, l := range brief(recordsOf(t, text)) {
		lines = append(lines, l[:strings.LastIndexByte(l, ' ')])
	}
	slices.Sort(lines)
	return lines
}
