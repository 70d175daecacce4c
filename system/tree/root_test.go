package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// plant creates files that contain their own names below dir; "x/" is a directory, "x -> y" a link.
func plant(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, target, link := strings.Cut(name, " -> ")
		at := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(name), 0o644)
		}
		expect.Must(t, err)
	}
}

// house creates a root and its neighbours: every file outside contains "outside".
func house(t testing.TB) (parent, dir string) {
	t.Helper()
	parent = expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	dir = filepath.Join(parent, "root")
	plant(t, dir, "ok.txt", "sub/in.txt", "sub/sub/")
	plant(t, parent, "root-evil/x", "secret")
	for _, f := range []string{"root-evil/x", "secret"} {
		expect.Must(t, os.WriteFile(filepath.Join(parent, f), []byte("outside"), 0o644))
	}
	plant(t, dir,
		"to-file -> ok.txt", "to-dir -> sub", "sub/up -> ../ok.txt", "abs -> "+filepath.Join(dir, "ok.txt"), "abs-dir -> "+filepath.Join(dir, "sub"),
		"out -> ../secret", "out-abs -> "+filepath.Join(parent, "secret"), "out-dir -> ..", "out-evil -> ../root-evil", "etc -> /etc",
		"via -> to-dir/up", "loop -> loop", "loop2 -> loop3", "loop3 -> loop2", "null -> /dev/null", "zero -> /dev/zero", "dangling -> nothing",
		"back -> ../root/ok.txt", "deepout -> sub/sub/../../../secret", "abs-evil -> "+dir+"-evil/x", "abs-out -> "+dir+"/../secret", "dot -> .")
	plant(t, dir, "c0 -> ok.txt")
	for i := range 50 {
		plant(t, dir, fmt.Sprintf("c%d -> c%d", i+1, i))
	}
	return parent, dir
}

func readAll(t testing.TB, r *Root, name string) (string, error) {
	t.Helper()
	f, at, err := r.OpenFile(name)
	if err != nil {
		if f != nil || at != nil {
			t.Errorf("%q: a file beside an error", name)
		}
		return "", err
	}
	defer func() { _ = f.Close() }()
	if !at.Mode().IsRegular() {
		t.Errorf("%q: mode %v", name, at.Mode())
	}
	b, err := io.ReadAll(f)
	return string(b), err
}

func TestOpenFileStaysInside(t *testing.T) {
	parent, dir := house(t)
	plain, careful := open(t, dir), open(t, dir, filepath.Join(dir, "no/such/store")) // with something denied inside
	for _, test := range []struct {
		name string
		want any // the text, or the error
	}{
		{"ok.txt", "ok.txt"},
		{"./ok.txt", "ok.txt"},
		{"sub/../ok.txt", "ok.txt"},
		{"sub//in.txt", "sub/in.txt"},
		{strings.Repeat("sub/../", 500) + "ok.txt", "ok.txt"},
		{filepath.Join(dir, "ok.txt"), "ok.txt"},
		{dir + "/sub/../ok.txt", "ok.txt"},
		{"to-file", "ok.txt"},
		{"to-dir/in.txt", "sub/in.txt"},
		{"sub/up", "ok.txt"},
		{"via", "ok.txt"},
		{"abs", "ok.txt"},
		{"abs-dir/in.txt", "sub/in.txt"},
		{"abs-dir/up", "ok.txt"},
		{"dot/dot/sub/in.txt", "sub/in.txt"},
		{"c3", "ok.txt"},
		{"c9", "ok.txt"},
		{"c39", "ok.txt"},

		{"../secret", ErrOutside},
		{"..", ErrOutside},
		{"./..", ErrOutside},
		{"sub/../..", ErrOutside},
		{"a/../../secret", ErrOutside},
		{"/etc/passwd", ErrOutside},
		{"/proc/self/environ", ErrOutside},
		{"/proc/self/root/etc/passwd", ErrOutside},
		{"/dev/stdin", ErrOutside},
		{parent + "/secret", ErrOutside},
		{dir + "-evil/x", ErrOutside},
		{dir + "/../secret", ErrOutside},
		{"../root/ok.txt", ErrOutside},
		{"out", ErrOutside},
		{"out-abs", ErrOutside},
		{"out-dir/secret", ErrOutside},
		{"out-dir/root/ok.txt", ErrOutside},
		{"out-evil/x", ErrOutside},
		{"deepout", ErrOutside},
		{"etc/passwd", ErrOutside},
		{"null", ErrOutside},
		{"zero", ErrOutside},
		{"back", ErrOutside},
		{"abs-evil", ErrOutside},
		{"abs-out", ErrOutside},

		{"", ErrNotFile},
		{".", ErrNotFile},
		{"sub", ErrNotFile},
		{"sub/", ErrNotFile},
		{"to-dir", ErrNotFile},
		{dir, ErrNotFile},

		{"nothing", fs.ErrNotExist},
		{"sub/nothing/deeper", fs.ErrNotExist},
		{"dangling", fs.ErrNotExist},
		{`C:\Windows\x`, fs.ErrNotExist},
		{`\\server\share\x`, fs.ErrNotExist},
		{`sub\in.txt`, fs.ErrNotExist},
		{strings.Repeat("n/", 2000), fs.ErrNotExist},

		{"ok.txt/", "a file, not a directory"},
		{"ok.txt/x", "not a directory"},
		{"ok.txt\x00", "NUL"},
		{"loop", "loop of links"},
		{"loop2/x", "loop of links"},
		{"c45", "too many links"},
		{strings.Repeat("x", 256), "name too long"},
		{strings.Repeat("x/", 2048) + "y", "at most 4096"},
	} {
		got, err := readAll(t, plain, test.name)
		if again, e := readAll(t, careful, test.name); again != got || fmt.Sprint(e) != fmt.Sprint(err) {
			t.Errorf("%.60q: %q, %v; with something denied inside %q, %v", test.name, got, err, again, e)
		}
		switch want := test.want.(type) {
		case error:
			expect.ErrorIs(t, err, want, "%.60q: %q", test.name, got)
		case string:
			if err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%.60q: %q, %v; want %q", test.name, got, err, want)
			}
		}
		if err != nil && len(err.Error()) > 320 {
			t.Errorf("%.60q: an error of %d bytes", test.name, len(err.Error()))
		}
		if strings.Contains(got, "outside") {
			t.Errorf("%.60q: ESCAPED", test.name)
		}
	}
}

func TestStat(t *testing.T) {
	_, dir := house(t)
	r := open(t, dir)
	if at, err := r.Stat("abs-dir"); err != nil || !at.IsDir() {
		t.Errorf("an absolute link inside the root: %v %v", at, err)
	}
	if at, err := r.Lstat("abs-dir"); err != nil || at.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("a link itself: %v %v", at, err)
	}
	expect.ErrorIs(t, expect.Err(r.Stat("out")), ErrOutside, "stat through a link out")
	expect.OK(t, expect.Err(r.Lstat("out")), "a link out is there")
	expect.ErrorIs(t, expect.Err(r.Lstat("out-dir/secret")), ErrOutside, "below a link out")
	expect.Fails(t, expect.Err(r.Stat("ok.txt/")), "", "ok.txt/ is no directory")
}

func TestRel(t *testing.T) {
	parent, dir := house(t)
	for _, link := range []string{"alias", "outside"} {
		expect.Must(t, os.Symlink(dir, filepath.Join(parent, link)))
	}
	r := open(t, filepath.Join(parent, "alias"))
	if r.Dir() != dir || r.Name() != "root" {
		t.Errorf("%s %s", r.Dir(), r.Name())
	}
	for in, want := range map[string]string{
		"": ".", ".": ".", "./": ".", "a/b": "a/b", "./a//b/": "a/b", "a/../b": "b", "a/..": ".", dir: ".", dir +
			"/": ".", dir + "/a": "a",
		parent + "/alias/x/y": "x/y", parent + "/alias": ".", parent + "/root/../alias/z": "z", "...": "...", "..a": "..a",
	} {
		if got, err := r.Rel(in); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
	// what a link outside points to is not asked
	for _, in := range []string{"..", "../x", "a/../..", "/", parent, dir + "x", dir + "-evil/x", "/etc", parent +
		"/outside/a"} {
		if got, err := r.Rel(in); !errors.Is(err, ErrOutside) {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	if top, err := Open("/"); err == nil {
		defer func() { _ = top.Close() }()
		if got, err := top.Rel("/etc/passwd"); err != nil || got != "etc/passwd" || top.Name() != "root" {
			t.Errorf("below /: %q %v %q", got, err, top.Name())
		}
	}
}

func FuzzRel(f *testing.F) {
	for _, s := range []string{"a/../..", "./a", "\x00", "/tmp", "a//b", "..\\x", "C:x", "~/x"} {
		f.Add(s)
	}
	r := expect.Value(Open(f.TempDir()))(f)
	defer func() { _ = r.Close() }()
	f.Fuzz(func(t *testing.T, name string) {
		got, err := r.Rel(name)
		if err != nil {
			if len(err.Error()) > 320 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			return
		}
		if !fs.ValidPath(got) && filepath.IsLocal(got) &&
			!strings.ContainsFunc(got, func(c rune) bool { return c == '\uFFFD' }) {
			t.Errorf("%q: %q is not clean", name, got)
		}
		if !filepath.IsLocal(got) {
			t.Errorf("%q: %q leaves the root", name, got)
		}
		if again, err := r.Rel(got); err != nil || again != got {
			t.Errorf("%q: %q, then %q %v", name, got, again, err)
		}
	})
}

func TestErrorsEchoLittle(t *testing.T) {
	for _, name := range []string{strings.Repeat("é", 2000), strings.Repeat("\xff", 2000), strings.Repeat("\u202e", 2000), strings.Repeat("a", 201)} {
		if shown := clip(name); len(shown) > maxEcho || !strings.Contains(shown, "…") {
			t.Errorf("%d bytes: %s", len(shown), shown)
		}
	}
	for name, want := range map[string]string{"a b": "a b", "\xff": `"\xff"`, "a\nb": `"a\nb"`, `a\b`: `a\b`, "\u202e": `"\u202e"`, "": `""`} {
		expect.Equal(t, clip(name), want, "%q", name)
	}
}

func TestOpenRootRefuses(t *testing.T) {
	parent, dir := house(t)
	for _, bad := range []string{filepath.Join(parent, "nothing"), filepath.Join(dir, "ok.txt"), filepath.Join(dir, "loop")} {
		if r, err := Open(bad); err == nil {
			_ = r.Close()
			t.Errorf("%s is opened", bad)
		}
	}
	for _, denied := range []string{dir, parent, filepath.Join(parent, "root", "."), "/"} {
		if r, err := Open(dir, denied); !errors.Is(err, ErrDenied) {
			if err == nil {
				_ = r.Close()
			}
			t.Errorf("a root in what is denied, %s: %v", denied, err)
		}
	}
}

// If the root is missing, the error says so instead of reporting a missing file.
func TestRootIsGone(t *testing.T) {
	_, dir := house(t)
	r := open(t, dir)
	expect.Must(t, os.Rename(dir, dir+"-moved"))
	if got, err := readAll(t, r, "ok.txt"); err != nil || got != "ok.txt" {
		t.Errorf("a moved root is the same directory: %q %v", got, err)
	}
	expect.Fails(t, expect.Err(readAll(t, r, "nothing")), "was removed, moved or replaced")
	expect.Must(t, os.RemoveAll(dir+"-moved"))
	plant(t, dir, "ok.txt")
	expect.Fails(t, expect.Err(readAll(t, r, "ok.txt")), "was removed, moved or replaced", "a root made anew")
	expect.Fails(t, expect.Err(r.Walk(t.Context(), Options{}, func(Entry) error { return nil })),
		"was removed, moved or replaced", "a walk of it")
}
