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

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
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
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// hostile are names that look like prefixes, separators and headers.
var hostile = []string{
	"main.c", "a/main.c", "b/main.c", "c/main.c", "i/main.c", "w/main.c", "o/main.c", "old/main.c", "new/main.c",
	"a/b/c/d", "docs/My Notes/read me.md", "x b/x", "a b/a b", "b/a/x b/a/x", "two  blanks", " leading", "trailing ",
	"ends in b", "x and y", "ümläut", "tab\tname", `quo"te`, `back\slash`, "new\nline", "it's", "dev/null", "x differ",
	"-r", "a -> b", "(nonexistent)", "1/2", "x/y/z/w/v/u/t", `"quoted"`, "diff --git a", "@@ -1 +1 @@",
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
		expect.Must(t, os.Chmod(filepath.Join(dir, "mode", name), 0o700))
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
			expect.Same(t, ours(t, git(a...), false), want, "%q (-git +ours)", a)
		}
	}
	git("commit", "-qm", "after")
	for _, form := range []string{"--no-color", "--color"} {
		got := ours(t, git("log", "-p", "-1", form, "-l9999"), false)
		expect.Same(t, got, gitsOwn(t, git, []string{"diff", "HEAD~", "-l9999"}), "log %s (-git +ours)", form)
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
	expect.Equal(t, errors.As(err, new(*content.Remarks)), cut, "cut, %v", err)
	for _, l := range brief(recordsOf(t, text)) {
		lines = append(lines, l[:strings.LastIndexByte(l, ' ')])
	}
	slices.Sort(lines)
	return lines
}

// change writes a directory and returns a function that changes it, and the records that are right for the change.
// what is the state of a binary file. No name has one of the characters not.
func change(t *testing.T, dir, what, not string) (apply func(), want []string) {
	t.Helper()
	before, after := map[string]string{}, map[string]string{}
	for _, name := range hostile {
		if strings.ContainsAny(name, not) || name[0] == '-' {
			continue
		}
		before["mod/"+name], after["mod/"+name] = "1\n", "22\n"
		after["add/"+name], before["del/"+name] = "++ 1\n2\n", "-- 1\n"
		before["bin/"+name], after["bin/"+name] = "\x00", "\x00\x01"
		want = append(want,
			fmt.Sprintf("modified mod/%[1]s→mod/%[1]s +1 −1", name), fmt.Sprintf("added null→add/%s +2 −0", name),
			fmt.Sprintf("deleted del/%[1]s→del/%[1]s +0 −1", name),
			fmt.Sprintf("%[2]s bin/%[1]s→bin/%[1]s +null −null", name, what))
	}
	slices.Sort(want)
	writeTree(t, dir, before)
	return func() {
		expect.Must(t, os.RemoveAll(filepath.Join(dir, "del")))
		writeTree(t, dir, after)
	}, want
}

func TestNamesAgreeWithHg(t *testing.T) {
	dir := t.TempDir()
	original(t, dir, "hg", "init", "-q", ".")
	apply, want := change(t, dir, "null", "\n")
	_, same := change(t, t.TempDir(), "modified", "\n")
	original(t, dir, "hg", "commit", "-qA", "-u", "a", "-m", "before")
	apply()
	original(t, dir, "hg", "addremove", "-q", "-s", "0")
	for _, form := range [][]string{{}, {"--config", "diff.noprefix=True"}, {"--color=always"}, {"-U0"}, {"--git"}} {
		if slices.Contains(form, "--git") { // it says what became of a binary file
			want = same
		}
		got := ours(t, original(t, dir, "hg", append([]string{"diff"}, form...)...), false)
		expect.Same(t, got, want, "%q (-hg +ours)", form)
	}
}

func TestNamesAgreeWithSvn(t *testing.T) {
	dir := t.TempDir()
	original(t, dir, "svnadmin", "create", "r")
	original(t, dir, "svn", "checkout", "-q", "file://"+dir+"/r", "w")
	w := filepath.Join(dir, "w")
	apply, want := change(t, w, "modified", "\n\t")
	original(t, w, "svn", "add", "-q", "--force", ".")
	original(t, w, "svn", "commit", "-qm", "before")
	apply()
	original(t, w, "svn", "add", "-q", "--force", ".")
	original(t, w, "svn", "delete", "-q", "del")
	for _, form := range [][]string{{}, {"--git"}, {"-x", "-p"}} {
		got := ours(t, original(t, w, "svn", append([]string{"diff"}, form...)...), false)
		expect.Same(t, got, want, "%q (-svn +ours)", form)
	}
}

func TestNamesAgreeWithDiff(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"a", "b"} {
		apply, want := change(t, filepath.Join(dir, sub), "modified", "\n")
		if sub == "a" {
			continue
		}
		apply()
		for _, form := range [][]string{{"-ruN"}, {"-r", "-u", "-N", "-p", "--color=always"}, {"-rNU0"}} {
			got := ours(t, original(t, dir, "diff", append(form, "a", "b")...), false)
			expect.Same(t, got, want, "%q (-diff +ours)", form)
		}
	}
}

// TestCutAnywhere cuts diffs at every byte: the files before the cut are as without it, and a cut is reported unless
// the text is a whole diff without it, or ends in the last line of a hunk, which may be whole.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string { return original(t, dir, "git", args...) }
	git("init", "-q")
	body := strings.Repeat("line\n", 30)
	names := []string{"a b", "mode", "moved", "moved2", "x/gone", "bin"}
	writeTree(t, dir, map[string]string{
		"a b": body, "mode": body + "m\n", "moved": body + "v\n", "moved2": body + "2\n", "x/gone": "1\n", "bin": "\x00",
	})
	git("add", "-A")
	git("commit", "-qm", "one")
	git("rm", "-q", "x/gone")
	git("mv", "moved", "to here")
	git("mv", "moved2", "to2")
	writeTree(t, dir, map[string]string{
		"a b": "x\n" + body + "y", "to2": body + "3\n", "new": "-- 1\n++ 2\n", "empty": "", "bin": "\x00\x00",
	})
	expect.Must(t, os.Chmod(filepath.Join(dir, names[1]), 0o700))
	git("add", "-A")
	for _, form := range []string{"-M", "--binary", "--no-prefix", "--color", "-R", "--src-prefix=before/"} {
		text := git("diff", "--cached", form)
		all := recordsOf(t, text)
		hunk, at, files := false, 0, 0
		for _, line := range strings.SplitAfter(text, "\n") {
			plain := string(content.WithoutEscapes(nil, []byte(line)))
			next := string(content.WithoutEscapes(nil, []byte(text[at+len(line):])))
			isDiff := strings.HasPrefix(plain, "diff --git")
			if isDiff {
				files++
			}
			hunk = strings.HasPrefix(plain, "@@") || hunk && !isDiff
			last := next == "" || strings.HasPrefix(next, "diff --git") || hunk && strings.HasPrefix(next, "@@") ||
				strings.HasPrefix(next, "\\") || strings.HasPrefix(plain, "\\") ||
				form == "--binary" && (plain == "\n" || strings.HasPrefix(next, "\n"))
			for n := 1; n <= len(line); n++ {
				cut := text[:at+n]
				err := Objects(t.Context(), strings.NewReader(cut), &bytes.Buffer{})
				damaged := errors.As(err, new(*content.Remarks))
				maybe := last && (hunk || n >= len(strings.TrimRight(line, "\x1b[m\n")))
				if !damaged && !maybe || damaged && last && n == len(line) {
					t.Errorf("%s: damaged is %v: …%q", form, damaged, cut[max(0, len(cut)-90):])
				}
				got := recordsOf(t, cut)
				if i := max(0, files-1); len(got) < i || i > 0 && !cmp.Equal(all[:i], got[:i]) {
					t.Errorf("%s: %d files, want %d: …%q", form, len(got), i, cut[max(0, len(cut)-90):])
				}
				if l := len(got); damaged && len(content.WithoutEscapes(nil, []byte(line[:n]))) > len("diff --git ") &&
					!got[l-1].Truncated {
					t.Errorf("%s: no file is truncated: …%q", form, cut[max(0, len(cut)-90):])
				}
			}
			at += len(line)
		}
	}
}

// TestCutProperties cuts a diff of Subversion inside a block of properties.
func TestCutProperties(t *testing.T) {
	last := strings.Index(svn, "\n+@@") + 1 // the last line of the block, which may be whole
	for n := strings.Index(svn, " trunk/readme.txt\n__") + 1; n <= last; n++ {
		got := recordsOf(t, svn[:n])
		if len(got) != 1 || got[0].File != "trunk/readme.txt" || *got[0].Added != 1 || !got[0].Truncated {
			t.Errorf("…%q: %+v", svn[max(0, n-40):n], got)
		}
	}
}
