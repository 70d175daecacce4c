package tree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A directory with the marker of a store is hidden by every way to it; without the marker, the control, none is.
func TestStoresAreHidden(t *testing.T) {
	for _, marked := range []bool{true, false} {
		dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
		plant(
			t,
			dir,
			"a.txt",
			"home/store/state/token",
			"home/store/b.txt",
			"home/other/c.txt",
			"link -> home/store/state/token",
			"to-state -> home/store/state",
			"abs -> "+dir+"/home/store",
		)
		if marked {
			plant(t, dir, "home/store/"+StoreMarker)
		}
		r := open(t, dir)
		for _, name := range []string{
			"home/store/state/token", "home/store/b.txt", "link", "to-state/token", "abs/b.txt",
			"home/other/../store/b.txt", dir + "/home/store/b.txt",
		} {
			if _, err := readAll(t, r, name); errors.Is(err, ErrDenied) != marked || (err == nil) == marked {
				t.Errorf("marked %t: open %s: %v", marked, name, err)
			}
			if _, err := r.Stat(name); errors.Is(err, ErrDenied) != marked {
				t.Errorf("marked %t: stat %s: %v", marked, name, err)
			}
		}
		for _, name := range []string{"home/store", "home/store/state", "to-state", "abs", "home/store/"} {
			if _, err := r.Stat(name); errors.Is(err, ErrDenied) != marked {
				t.Errorf("marked %t: stat %s: %v", marked, name, err)
			}
			if _, _, err := r.OpenFile(name); errors.Is(err, ErrDenied) != marked {
				t.Errorf("marked %t: open %s: %v", marked, name, err)
			}
			_, err := r.Walk(t.Context(), Options{Start: name, All: true}, func(Entry) error { return nil })
			expect.Equal(t, errors.Is(err, ErrDenied), marked, "marked: walk %s: %v", name, err)
			if sub, err := r.Sub(name); errors.Is(err, ErrDenied) != marked {
				t.Errorf("marked %t: root %s: %v", marked, name, err)
			} else if err == nil {
				_ = sub.Close()
			}
			if top, err := Open(filepath.Join(dir, name)); errors.Is(err, ErrDenied) != marked {
				t.Errorf("marked %t: open root %s: %v", marked, name, err)
			} else if err == nil {
				_ = top.Close()
			}
		}
		if _, err := r.Stat("home/store/none"); errors.Is(err, ErrDenied) != marked { // nor whether something is in it
			t.Errorf("marked %t: stat of what is missing: %v", marked, err)
		}
		store := expect.Value(CompileGlob("*/store"))(t)
		for _, o := range []Options{
			{All: true}, {All: true, Stat: true}, {Ahead: true, All: true}, {Hold: true}, {}, {Start: "home", Depth: 1},
			{Start: "home"}, {Glob: store},
		} {
			got := list(t, r, o)
			found := slices.ContainsFunc(
				got,
				func(p string) bool { return filepath.Dir(p) == "home/store" || p == "home/store" },
			)
			if found == marked {
				t.Errorf("marked %t: a walk with %+v sees %q", marked, o, got)
			}
			report, err := r.Walk(t.Context(), o, func(Entry) error { return nil })
			if marked && (report.Stores != 1 || report.FirstStore != "home/store") || !marked && report.Stores != 0 ||
				err != nil {
				t.Errorf(
					"marked %t: a walk with %+v counts %d stores, the first %q: %v",
					marked,
					o,
					report.Stores,
					report.FirstStore,
					err,
				)
			}
			if o.Glob == nil && !slices.Contains(got, "home/other") {
				t.Errorf("a walk with %+v misses what is beside a store: %q", o, got)
			}
		}
	}
}

// A directory that becomes a store while the root is open is hidden from then on.
func TestALaterStoreIsHidden(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "later/a.txt", "b.txt")
	r := open(t, dir)
	expect.Value(readAll(t, r, "later/a.txt"))(t)
	plant(t, dir, "later/"+StoreMarker)
	expect.ErrorIs(t, expect.Err(readAll(t, r, "later/a.txt")), ErrDenied, "open")
	expect.EqualList(t, list(t, r, Options{}), []string{"b.txt"}, "a walk sees")
	if err := os.WriteFile(filepath.Join(dir, StoreMarker), nil, 0o600); err != nil { // the root itself
		t.Fatal(err)
	}
	expect.ErrorIs(t, expect.Err(readAll(t, r, "b.txt")), ErrDenied, "the root is a store, open")
}
