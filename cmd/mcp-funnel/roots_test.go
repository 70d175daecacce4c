package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// homeIn makes a directory the home, and the place of its stores.
func homeIn(t *testing.T, dir string) string {
	t.Helper()
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	return dir
}

// ~ is $HOME in flags, variables and the configuration.
func TestTildeIsHome(t *testing.T) {
	home := homeIn(t, t.TempDir())
	t.Setenv("MCP_FUNNEL_STORE", "~/kept")
	write(t, filepath.Join(home, "work", "a.txt"), "x")
	write(t, filepath.Join(home, "config.yaml"), "root: [~/work]\n")
	for _, args := range [][]string{{"--root", "~/work"}, {"--config", "~/config.yaml"}} {
		code, out, complaints := runs(t, append(args, "call", "find", "show=tree")...)
		if code != done || !strings.Contains(out, "a.txt") {
			t.Errorf("%q: code %d, %s%s", args, code, out, complaints)
		}
	}
	expect.OK(t, expect.Err(os.Stat(filepath.Join(home, "kept"))), "the store")
	for path, want := range map[string]string{
		"~": home, "~/a": filepath.Join(home, "a"), "/a": filepath.FromSlash("/a"),
	} {
		if got := cli.ExpandPath(path); got != want && filepath.Separator == '/' {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// Another person's home is not looked up.
	if got := cli.ExpandPath("~ann/a"); filepath.Base(filepath.Dir(got)) != "~ann" {
		t.Errorf("~ann: %s", got)
	}
}

func TestUnexpandedRoot(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, root := range []string{"${workspaceFolder}", "${workspaceFolder}/sub", "${env:HOME}"} {
		code, _, complaints := runs(t, "--root", root, "call", "find")
		if code != usage || !strings.Contains(complaints, "the client did not replace ${") {
			t.Errorf("%s: code %d, %s", root, code, complaints)
		}
	}
	dir := filepath.Join(t.TempDir(), "${odd}")
	write(t, filepath.Join(dir, "a.txt"), "x")
	if code, out, complaints := runs(t, "--root", dir, "call", "find", "show=tree"); code != done ||
		!strings.Contains(out, "a.txt") {
		t.Errorf("a directory of that name: code %d, %s", code, complaints)
	}
}

// A root that grants a home says so once, and in doctor.
func TestWideRootsAreNamed(t *testing.T) {
	home := homeIn(t, t.TempDir())
	project := filepath.Join(home, "project")
	write(t, filepath.Join(project, "a.txt"), "x")
	for dir, wide := range map[string]bool{home: true, filepath.Dir(home): true, project: false} {
		_, _, complaints := runs(t, "--root", dir, "call", "find", "limit=1")
		_, report, _ := runs(t, "--root", dir, "doctor")
		for what, text := range map[string]string{"call": complaints, "doctor": report} {
			if n := strings.Count(text, "keys and mail included"); n != map[bool]int{true: 1}[wide] {
				t.Errorf("%s %s: named %d times:\n%s", what, dir, n, text)
			}
		}
	}
}

// A home that is a link is a home under its name and where it leads.
func TestALinkedHomeIsAHome(t *testing.T) {
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	real, linked := filepath.Join(top, "disk", "ann"), filepath.Join(top, "home", "ann")
	write(t, filepath.Join(real, "project", "a.txt"), "x")
	write(t, filepath.Join(top, "home", "b.txt"), "x")
	if err := os.Symlink(real, linked); err != nil {
		t.Skip("links cannot be made here")
	}
	homeIn(t, linked)
	for dir, want := range map[string]bool{
		real: true, linked: true, filepath.Join(top, "disk"): true,
		filepath.Join(linked, "project"): false, filepath.Join(top, "home"): false,
	} {
		expect.Equal(t, cli.GrantsHome(dir), want, dir)
		_, report, _ := runs(t, "--root", dir, "--store", filepath.Join(top, "store"), "doctor")
		expect.Equal(t, strings.Contains(report, "keys and mail included"), want, "doctor %s\n%s", dir, report)
	}
}

// The store of another server is hidden too, where stores are by default.
func TestTheDefaultStoreIsHidden(t *testing.T) {
	home := homeIn(t, t.TempDir())
	secret := filepath.Join(home, "state", "mcp-funnel", "state", "http-token")
	write(t, secret, "the other server's token")
	write(t, filepath.Join(home, "state", "other", "a.txt"), "the control")
	c := &commandLine{t: t, root: home, store: filepath.Join(t.TempDir(), "store")}
	for path, shown := range map[string]bool{secret: false, filepath.Join(home, "state", "other", "a.txt"): true} {
		code, out, complaints := c.run("call", "read", "path="+path)
		expect.Equal(t, code == done && strings.Contains(out, "the "), shown, "%s: shown\n%s%s", path, out, complaints)
	}
	if _, out, _ := c.run("call", "search", "pattern=the", "all=true"); strings.Contains(out, "token") {
		t.Errorf("search: %s", out)
	}
}

// The token in a store of another server, wherever that is, is shown by no tool; without the marker, the control, by
// every tool.
func TestStoresOfOthersAreHidden(t *testing.T) {
	home := homeIn(t, t.TempDir())
	c := &commandLine{t: t, root: home, store: filepath.Join(t.TempDir(), "store")}
	other := filepath.Join(home, "elsewhere", "funnel")
	if code, _, complaints := runs(t, "--store", other, "observations", "list"); code != done { // it makes a store
		t.Fatal(complaints)
	}
	token := filepath.Join(other, "state", "http-token")
	write(t, token, "anothers-token")
	marker := filepath.Join(other, tree.StoreMarker)
	expect.Value(os.Stat(marker))(t, "a new store has no marker")
	for _, marked := range []bool{true, false} {
		if !marked {
			expect.Must(t, os.Remove(marker))
		}
		for _, call := range [][]string{
			{"read", "path=" + token},
			{"read", "path=elsewhere/funnel/state/*-token"},
			{"slice", "source=elsewhere/funnel/state/http-token", "lines=1"},
			{"grep", "source=elsewhere/funnel/state/http-token", "pattern=."},
			{"jq", "source=elsewhere/funnel/state/http-token", "filter=.text"},
			{"jq", "source=elsewhere/funnel/state/*-token", "filter=.text"},
			{"search", "pattern=anothers", "all=true"},
			{"search", "pattern=anothers", "path=elsewhere/funnel/state"},
			{"find", "glob=**/http-token", "all=true"},
			{"find", "path=elsewhere/funnel"},
		} {
			_, out, complaints := c.run(append([]string{"--no-mask", "call"}, call...)...)
			shown := strings.Contains(out, "anothers-token") || strings.Contains(out, "quota.json") ||
				strings.Contains(out, `"path":"elsewhere/funnel/state/http-token"`)
			if shown == marked {
				t.Errorf("marked %t: %q shows it: %t\n%s%s", marked, call, shown, out, complaints)
			}
		}
		_, out, _ := c.run("call", "find", "path=elsewhere", "show=tree")
		if strings.Contains(out, "is a store of observations") != marked ||
			marked && strings.Contains(out, "state") {
			t.Errorf("marked %t: %s", marked, out)
		}
	}
	if code, _, complaints := runs(t, "--store", other, "observations", "list"); code != done {
		t.Fatal(complaints)
	}
	expect.OK(t, expect.Err(os.Stat(marker)), "a store of an earlier version gets no marker when it is opened")
}

// A directory typed on the command line is read wherever the program is called, and grants nothing to --root.
func TestNamedDirectoryIsGranted(t *testing.T) {
	home, other := homeIn(t, t.TempDir()), t.TempDir() // a home is too wide to be a root without being asked
	store := t.TempDir()
	write(t, filepath.Join(home, "work", "a.txt"), "one\ntwo\n")
	write(t, filepath.Join(other, "b.txt"), "one\n")
	t.Chdir(home)
	for _, path := range []string{"work", "~/work", filepath.Join(home, "work"), other} {
		for _, command := range [][]string{{"scan", path}, {"investigate", path}, {"investigate", path, "--dry-run"},
			{"investigations", "verify", path}} {
			code, _, errText := runs(t, append(command, "--store", store)...)
			expect.Equal(t, code, 0, "%q: code: %s", command, errText)
		}
	}
	if code, out, _ := runs(t, "scan", other, "--root", filepath.Join(home, "work"), "--store", store); code == 0 {
		t.Errorf("a directory outside --root was read: %s", out)
	}
	t.Chdir(filepath.Join(home, "work"))
	if code, out, errText := runs(t, "scan", ".", "--store", store); code != 0 || !strings.Contains(out, "1 file") {
		t.Errorf("below the current directory: code %d: %s%s", code, out, errText)
	}
}

// Directories without --root are roots: they join those of the flag and replace that of the variable. Without the word
// serve only an existing one is.
func TestDirectoriesOfTheCommandLine(t *testing.T) {
	home := homeIn(t, t.TempDir())
	a, b := filepath.Join(home, "a b"), filepath.Join(home, "ü")
	write(t, filepath.Join(a, "a.txt"), "x")
	write(t, filepath.Join(b, "b.txt"), "x")
	t.Setenv("MCP_FUNNEL_ROOT", home)
	for _, k := range []struct {
		words []string
		roots string // as the instructions name them
		says  string

		serves bool // although it says something
	}{
		{words: []string{a}, roots: "", says: ""},
		{words: []string{a, b}, roots: "Roots: a b, ü."},
		{words: []string{"serve", a, b}, roots: "Roots: a b, ü."},
		{words: []string{"--root", a, "serve", b}, roots: "Roots: a b, ü."},
		{words: []string{"serve", "", a}},
		{words: []string{"serve", "${user_config.roots}", a}},
		{words: []string{"serve", "--", a, b}, roots: "Roots: a b, ü."},
		{words: []string{"--", a, b}, roots: "Roots: a b, ü."},
		{words: []string{"serve", "--"}, says: "no root: calls on files are refused", serves: true},
		{words: []string{"serve", "${user_config.roots}"}, says: "no directory was chosen", serves: true},
		{words: []string{"serve", "--", "${user_config.roots}"}, says: "no directory was chosen", serves: true},
		{words: []string{"--", "call"}, says: "call was missing when mcp-funnel started", serves: true},
		{words: []string{"serve", "--", "--root=/"}, says: "--root= was missing when mcp-funnel started", serves: true},
		{words: []string{"serve", ""}, says: "the directory is empty"},
		{words: []string{""}, says: "the directory is empty"},
		{words: []string{"serve", filepath.Join(home, "none")}, says: "none was missing when mcp-funnel started", serves: true},
		{words: []string{filepath.Join(home, "none")}, says: "neither a command nor an existing directory"},
		{words: []string{filepath.Join(a, "a.txt")}, says: "it is no directory"},
		{words: []string{"statz"}, says: "did you mean stats?"},
		{words: []string{"help", "serve"}, says: "unexpected argument help"},
		{words: []string{a, "serve"}, says: "unexpected argument serve"},
		{words: []string{"serve", "${workspaceFolder}"}, says: "the client did not replace ${workspaceFolder}"},
	} {
		code, out, said := runIn(t, opening, k.words...)
		refused := k.says != "" && !k.serves
		expect.Equal(t, code == usage, refused, "%q: code %d: %s", k.words, code, said)
		expect.Contains(t, said, k.says)
		if !refused && (!strings.Contains(out, k.roots) || k.roots == "" && strings.Contains(out, "Roots:")) {
			t.Errorf("%q: %s", k.words, out)
		}
	}
}

// Directories of the system, and what lies in some of them, are no roots unless they are named, also where a link leads
// to them.
func TestSystemDirectoriesAreNoRoots(t *testing.T) {
	homeIn(t, t.TempDir())
	link := filepath.Join(t.TempDir(), "link")
	expect.Must(t, os.Symlink("/etc", link))
	for _, dir := range []string{"/bin", "/sbin", "/usr/bin", "/etc", "/etc/ssl", "/proc/self", "/dev/shm", "/tmp", link} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		t.Chdir(dir)
		_, out, said := runIn(t, opening, "serve")
		expect.Contains(t, said, "no root: calls on files are refused")
		expect.Contains(t, out, `"id":1`)
	}
	t.Chdir(t.TempDir()) // control
	_, _, said := runIn(t, opening, "serve")
	expect.Equal(t, strings.Contains(said, "no root"), false, said)
}
