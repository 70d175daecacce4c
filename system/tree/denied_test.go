package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// vault creates a root that contains a store, a configuration file and a token.
func vault(t testing.TB) (dir string, r *Root) {
	t.Helper()
	dir = expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	plant(
		t,
		dir,
		"a.txt",
		"state/store/observations/x.txt",
		"state/store/y",
		"state/other",
		"cfg/config.yaml",
		"cfg/other.yaml",
		"store-not/z",
		"token",
		"to-store -> state/store",
		"to-state -> state",
		"to-token -> token",
		"abs -> "+dir+"/state/store",
		"sub/up -> ../state/store/observations",
		"via -> to-state/store",
		"link-file -> state/store/y",
		"token.bak/",
		"out -> ..",
	)
	expect.Must(t, os.Link(filepath.Join(dir, "token"), filepath.Join(dir, "hard")))
	return dir, open(
		t,
		dir,
		filepath.Join(dir, "state/store"),
		dir+"/cfg/config.yaml",
		dir+"/./token",
		dir+"/later/store",
	)
}

func TestDeniedIsNeverReached(t *testing.T) {
	dir, r := vault(t)
	refused := []string{
		"state/store", "state/store/y", "state/store/observations/x.txt", "state/store/none", "./state//store/y", "state/x/../store/y", dir + "/state/store/y",
		"to-store/y", "to-state/store/y", "abs/y", "sub/up/x.txt", "via/y", "link-file", "to-store/observations/x.txt", "to-store",
		"cfg/config.yaml", "token", "to-token", "hard", "later/store", "later/store/x",
	}
	check := func(when string, names ...string) {
		t.Helper()
		for _, name := range names {
			if got, err := readAll(t, r, name); !errors.Is(err, ErrDenied) {
				t.Errorf("%s: open %s: %q %v", when, name, got, err)
			}
			expect.ErrorIs(t, expect.Err(r.Stat(name)), ErrDenied, "%s: stat %s", when, name)
			if _, err := r.Walk(t.Context(), Options{Start: name, All: true}, func(Entry) error { return nil }); err == nil {
				t.Errorf("%s: walk %s: no error", when, name)
			}
		}
	}
	check("as it was", refused...)
	for _, name := range []string{"a.txt", "state/other", "cfg/other.yaml", "store-not/z", "to-state/other"} {
		expect.OK(t, expect.Err(readAll(t, r, name)), name)
	}
	want := []string{
		"a.txt",
		"abs",
		"cfg",
		"cfg/other.yaml",
		"link-file",
		"out",
		"state",
		"state/other",
		"store-not",
		"store-not/z",
		"sub",
		"sub/up",
		"to-state",
		"to-store",
		"to-token",
		"token.bak",
		"via",
	}
	expect.EqualList(t, list(t, r, Options{All: true}), want, "a walk sees")
	expect.EqualList(t, list(t, r, Options{All: true, Start: "to-state"}), []string{"to-state/other"},
		"a walk of a link sees")
	// Denied files are also moved, and created later.
	expect.Must(t, os.Rename(filepath.Join(dir, "state/store"), filepath.Join(dir, "moved")))
	expect.Must(t, os.Rename(filepath.Join(dir, "token"), filepath.Join(dir, "token.bak/t")))
	plant(t, dir, "later/store/x", "state/store/new", "later-link -> later/store", "moved-link -> moved")
	check(
		"after a move", "moved/y", "moved", "moved-link/y", "later/store/x", "later-link/x", "state/store/new",
		"to-store/new", "token.bak/t",
	)
	for _, p := range list(t, r, Options{All: true}) {
		if strings.Contains(p, "store/") || strings.HasPrefix(p, "moved/") || p == "moved" || p == "token.bak/t" {
			t.Errorf("a walk sees %s", p)
		}
	}
}

// Control: comparing names alone misses links, hard links and moves.
func TestDeniedByNameAloneIsNotEnough(t *testing.T) {
	dir, _ := vault(t)
	weak := open(t, dir, filepath.Join(dir, "state/store"), dir+"/token")
	weak.denied.inside = false // so that opened directories are not looked at
	for i := range weak.denied.list {
		weak.denied.list[i].id = ident{}
		weak.denied.list[i].path = "/nowhere"
	}
	for _, name := range []string{"to-store/y", "hard", "via/y"} {
		expect.OK(t, expect.Err(readAll(t, weak, name)), "%s: the control refuses it", name)
	}
}

func list(t testing.TB, r *Root, o Options) (got []string) {
	t.Helper()
	expect.Value(r.Walk(t.Context(), o, func(e Entry) error { got = append(got, e.Path); return nil }))(t)
	return got
}
