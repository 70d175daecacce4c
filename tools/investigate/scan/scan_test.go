package scan

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

func scanned(t *testing.T, dir string, o Options) *Tree {
	t.Helper()
	root, err := tree.Open(dir)
	expect.Must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	got, err := Scan(t.Context(), root, ".", o)
	expect.Must(t, err)
	return got
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		expect.Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		expect.Must(t, os.WriteFile(p, []byte(text), 0o600))
	}
}

func shell(t *testing.T, dir, command string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "LC_ALL=C")
	out, err := c.Output()
	expect.Must(t, err, command)
	return strings.TrimSpace(string(out))
}

// TestAgainstOriginals compares a scan of the toolchain's source with find, wc and file.
func TestAgainstOriginals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("find has no -printf here")
	}
	dir := filepath.Join(shell(t, ".", "go env GOROOT"), "src", "cmd")
	if !promise.Full() {
		dir = filepath.Join(dir, "compile")
	}
	got := scanned(t, dir, Options{All: true})
	r := got.Report(dir)
	number := func(command string) int64 {
		n, err := strconv.ParseInt(shell(t, dir, command), 10, 64)
		expect.Must(t, err)
		return n
	}
	for _, c := range []struct {
		what, command string
		got           int64
	}{
		{"files", "find . -type f | wc -l", r.Files},
		{"lines", "find . -type f -print0 | xargs -0 grep -ach '' | awk '{s+=$1} END {print s}'", r.Lines},
		{"bytes", "find . -type f -printf '%s\n' | awk '{s+=$1} END {print s}'", r.Bytes},
		{"disk", "find . -type f -printf '%b\n' | awk '{s+=$1} END {print s*512}'", r.DiskBytes},
		{"directories", "find . -type d | wc -l", int64(len(r.Directories))},
	} {
		expect.Equal(t, c.got, number(c.command), "%s, %s gives", c.what, c.command)
	}
	found := shell(t, dir, "find . -type f -printf '%T@ %P\n'")
	for _, f := range r.Recent {
		at := fmt.Sprintf("%d.%09d", f.Modified.Unix(), f.Modified.Nanosecond())
		if !strings.Contains("\n"+found+"\n", "\n"+at+"0 "+f.Path+"\n") {
			t.Errorf("%s %s is not what find says", at, f.Path)
		}
	}
	file := peer.Find(t, "file")
	list := filepath.Join(t.TempDir(), "list")
	var names []string
	for _, f := range got.Files {
		if f.Size > 0 {
			names = append(names, filepath.Join(dir, f.Path))
		}
	}
	expect.Must(t, os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o600))
	lines := strings.Split(shell(t, dir, file+" --brief --mime-encoding --files-from "+list), "\n")
	expect.MustEqual(t, len(lines), len(names), "file gives, lines")
	wrong, i := 0, 0
	for _, f := range got.Files {
		if f.Size == 0 {
			continue
		}
		if (lines[i] == "binary") != f.Binary {
			wrong++
			if wrong < 20 {
				t.Logf("%s: file says %s", f.Path, lines[i])
			}
		}
		i++
	}
	if wrong*100 > len(names) {
		t.Errorf("%d of %d files differ in text or binary", wrong, len(names))
	}
}

// TestSkips lists what is skipped, why, and how many files that are.
func TestSkips(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "package main\n", ".hidden/a": "", ".hidden/b": "", ".git/HEAD": "ref\n", ".gitignore": "out/\n*.tmp\n",
		"out/x": "", "out/y/z": "", "note.tmp": "", "node_modules/a/index.js": "", "node_modules/b.js": "",
		"py/__pycache__/a.pyc": "", "py/x.egg-info/PKG": "", "py/myenv/pyvenv.cfg": "", "py/myenv/lib/a.py": "",
		"py/env.py": "print(1)\n",
	})
	got := scanned(t, dir, Options{})
	var files []string
	for _, f := range got.Files {
		files = append(files, f.Path)
	}
	expect.EqualList(t, files, []string{"main.go", "py/env.py"}, "files")
	want := []Skip{
		{".git", "hidden", 1}, {".gitignore", "hidden", 1}, {".hidden", "hidden", 2}, {"node_modules", "node_modules", 2},
		{"note.tmp", "ignored", 1}, {"out", "ignored", 2}, {"py/__pycache__", "__pycache__", 1},
		{"py/myenv", "virtual environment", 2}, {"py/x.egg-info", "*.egg-info", 1},
	}
	expect.EqualList(t, got.Skipped, want, "skipped")
	all := scanned(t, dir, Options{All: true})
	if !slices.Equal(all.Skipped, []Skip{{".git", "git", 1}}) || len(all.Files) != 14 { // .git is counted, never entered
		t.Errorf("all: %d files, skipped %+v", len(all.Files), all.Skipped)
	}
}

// settle makes a scan one of long after the last change of its files, as it is read from where it was kept.
func settle(t *testing.T, scan *Tree) *Tree {
	t.Helper()
	raw, err := json.Marshal(scan)
	var kept Tree
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	expect.Must(t, err)
	kept.At += int64(2 * settled)
	return &kept
}

// TestLast opens only files that changed, and estimates the tokens of a tree by the samples of all its files, also of
// those that are not opened again. A file that changed just before the last scan may have changed since: it is opened.
func TestLast(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.go": "package a\n", "b/b.go": "package b\n", "b/c.txt": strings.Repeat("x", 980)})
	o := Options{Hash: true, Count: func(text string) int { return len(text) / 2 }}
	first := scanned(t, dir, o)
	o.Last = settle(t, first)
	again := scanned(t, dir, o)
	if again.Looked != 0 || len(again.Files) != 3 || again.Files[1] != first.Files[1] {
		t.Errorf("opened %d of %+v", again.Looked, again.Files)
	}
	if first.Ratio != 2 || again.Ratio != 2 || again.Totals()[0].Tokens != 500 {
		t.Errorf("%v and %v bytes a token, %d tokens", first.Ratio, again.Ratio, again.Totals()[0].Tokens)
	}
	write(t, dir, map[string]string{"b/b.go": "package B\n"}) // of the same size
	again = scanned(t, dir, o)
	if again.Looked != 1 || again.Files[1].Hash == first.Files[1].Hash || again.Files[0].Hash != first.Files[0].Hash {
		t.Errorf("opened %d: %+v", again.Looked, again.Files)
	}
	o.Last = first
	expect.Equal(t, scanned(t, dir, o).Looked, 3, "opened, 3 files that had just changed")
}

// TestErrors has more errors than a tree holds: the last line says how many are left out.
func TestErrors(t *testing.T) {
	for n, last := range map[int]string{maxErrors: "x", maxErrors + 1: "and 1 more", maxErrors + 50: "and 50 more"} {
		var s scanner
		s.tree.Errors = slices.Repeat([]string{"x"}, n)
		s.finish()
		if all := s.tree.Errors; len(all) != min(n, maxErrors+1) || all[len(all)-1] != last {
			t.Errorf("%d errors: %d lines, the last is %q, not %q", n, len(all), all[len(all)-1], last)
		}
	}
}

// TestCategories has one file of each category.
func TestCategories(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{
		"a.go": Source, "a_test.go": Test, "testdata/x.go": Fixture, "gen.go": Generated, "go.sum": Generated,
		"README.md": Documentation, "LICENSE": Documentation, "go.mod": Configuration, "x.yaml": Configuration,
		"data.csv": Data, "logo.png": Media, "prog": Binary, "odd.xyz": Other, "package.json": Configuration,
	}
	texts := map[string]string{
		"gen.go": "// Code generated by x. DO NOT EDIT.\npackage a\n", "logo.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00",
		"prog": "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00", "data.csv": "a,b\n1,2\n",
	}
	for name := range want {
		if texts[name] == "" {
			texts[name] = "package a\n"
		}
	}
	write(t, dir, texts)
	for _, f := range scanned(t, dir, Options{}).Files {
		expect.Equal(t, f.Category, want[f.Path], "%s, %+v", f.Path, f)
	}
}

// TestLines counts lines, with and without a newline behind the last one, also where a file is read in several pieces.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	want := map[string]int64{"empty": 0, "one": 1, "open": 2, "blank": 2, "crlf": 2, "long": 1, "edge": bufferSize / 2}
	write(t, dir, map[string]string{
		"empty": "", "one": "int a;\n", "open": "int a;\nint b;", "blank": "\n\n", "crlf": "a\r\nb",
		"long": strings.Repeat("x", 3*bufferSize), "edge": strings.Repeat("x\n", bufferSize/2),
	})
	for _, f := range scanned(t, dir, Options{}).Files {
		expect.Equal(t, f.Lines, want[f.Path], "%s, lines", f.Path)
	}
}

// TestGitIsCounted counts the files of .git, of a worktree's file too.
func TestGitIsCounted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.go": "package a\n", ".git/HEAD": "ref\n", ".git/objects/aa/bb": "x", "sub/.git": "gitdir: x\n",
	})
	for all, want := range map[bool][]Skip{
		false: {{".git", "hidden", 2}, {"sub/.git", "hidden", 1}}, true: {{".git", "git", 2}},
	} {
		if got := scanned(t, dir, Options{All: all}); !slices.Equal(got.Skipped, want) || slices.Contains(got.Dirs, ".git") {
			t.Errorf("all %v: skipped %+v, directories %q", all, got.Skipped, got.Dirs)
		}
	}
}

// TestOddTrees has an empty directory, links, and files that cannot be read.
func TestOddTrees(t *testing.T) {
	dir := t.TempDir()
	if got := scanned(t, dir, Options{}); len(got.Files) != 0 || len(got.Dirs) != 1 {
		t.Errorf("empty: %+v", got)
	}
	write(t, dir, map[string]string{"a/x.txt": "x\n", "secret": "s"})
	for link, to := range map[string]string{"loop": ".", "out": "/etc", "file": "a/x.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	expect.Must(t, os.Chmod(filepath.Join(dir, "secret"), 0))
	got := scanned(t, dir, Options{Hash: true})
	if len(got.Files) != 2 || got.Other != 3 || got.Files[0].Lines != 1 {
		t.Errorf("%+v", got)
	}
	if os.Geteuid() != 0 && (got.Files[1].Error == "" || len(got.Errors) != 1) {
		t.Errorf("an unreadable file: %+v, %q", got.Files[1], got.Errors)
	}
}
