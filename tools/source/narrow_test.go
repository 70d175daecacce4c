package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// TestNarrow tries what a client may name as its roots against two roots of the operator's.
func TestNarrow(t *testing.T) {
	top := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{top}, names...)...) }
	for _, dir := range []string{"work", "work/src", "work/src/deep", "work/docs", "work/store", "more", "work-evil", "outside"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(dir, "here.txt"), []byte(dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("outside"), at("work", "leave")); err != nil {
		t.Fatal(err)
	}
	var roots []*tree.Root
	for _, dir := range []string{"work", "more"} {
		r, err := tree.Open(at(dir), at("work", "store"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		roots = append(roots, r)
	}
	granted := source.Set{Roots: roots}
	for _, k := range []struct {
		dirs []string
		want []string // below top
	}{
		{[]string{at("work", "src")}, []string{"work/src"}},
		{[]string{at("work", "src", "..", "docs")}, []string{"work/docs"}},
		{[]string{at("work", "src"), at("work", "src", "deep"), at("work", "src")}, []string{"work/src"}},
		{[]string{at("work", "docs"), at("more"), at("work", "src")}, []string{"work/docs", "work/src", "more"}},
		{[]string{top}, []string{"work", "more"}},
		{[]string{"/"}, []string{"work", "more"}},
		{[]string{at("work"), at("work", "src")}, []string{"work"}},
		// Nothing of these is granted.
		{[]string{at("outside"), at("work", "src")}, []string{"work/src"}},
		{[]string{at("outside")}, nil},
		{[]string{at("work-evil")}, nil},
		{[]string{at("work", "leave")}, nil},
		{[]string{at("work", "store")}, nil},
		{[]string{at("work", "none"), at("work", "here.txt")}, nil},
		{[]string{"src", ".", "..", ""}, nil},
		{[]string{at("work", "src") + "\x00"}, nil},
		{nil, nil},
	} {
		narrowed, done := granted.Narrow(k.dirs)
		var got []string
		for _, r := range narrowed.Roots {
			rel, err := filepath.Rel(roots[0].Dir(), r.Dir())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(filepath.Join("work", rel)))
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%q leave %q, want %q", k.dirs, got, k.want)
		}
		src, err := narrowed.Open(t.Context(), "here.txt")
		if len(k.want) == 1 && err != nil || len(k.want) == 0 && !errors.Is(err, source.ErrNarrowed) {
			t.Errorf("%q: %v", k.dirs, err)
		}
		if err == nil {
			_ = src.Close()
		}
		if _, err := narrowed.Locate(t.Context(), ""); len(k.want) == 0 && !errors.Is(err, source.ErrNarrowed) {
			t.Errorf("%q: %v", k.dirs, err)
		}
		for _, name := range []string{at("outside", "here.txt"), "../outside/here.txt", "leave/here.txt", at("work-evil", "here.txt")} {
			if src, err := narrowed.Open(t.Context(), name); err == nil {
				t.Errorf("%q: %s is open to tools", k.dirs, name)
				_ = src.Close()
			}
		}
		done()
	}
	if src, err := granted.Open(t.Context(), "work/here.txt"); err != nil {
		t.Errorf("the roots granted were closed: %v", err)
	} else {
		_ = src.Close()
	}
	if n, done := (source.Set{}).Narrow([]string{"/"}); n.NoRoot != nil || len(n.Roots) > 0 {
		t.Errorf("of nothing: %+v", n)
	} else {
		done()
	}
}
