package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func TestComplete(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		"work/.gitignore": "*.log\n", "work/.hidden": "", "work/new\nline": "", "work/src/main.go": "", "work/src/make.go": "", "work/src/deep/x": "", "work/srv.txt": "",
		"work/a.log": "", "work/obs:x": "", "work/e\u202evil": "", "work/.git/config": "", "work/store/x": "", "more/x": "", "outside/secret": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "outside"), filepath.Join(top, "work", "leave")); err != nil {
		t.Fatal(err)
	}
	var roots []*tree.Root
	for _, dir := range []string{"work", "more"} {
		r, err := tree.Open(filepath.Join(top, dir), filepath.Join(top, "work", "store"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		roots = append(roots, r)
	}
	one, two := source.Set{Roots: roots[:1]}, source.Set{Roots: roots}
	for _, k := range []struct {
		s     source.Set
		begun string
		want  []string
	}{
		{one, "", []string{`e\u{202e}vil`, "leave", `new\x0aline`, "./obs:x", "src/", "srv.txt"}},
		{one, "sr", []string{"src/", "srv.txt"}},
		{one, "src/ma", []string{"src/main.go", "src/make.go"}},
		{one, "./src/ma", []string{"./src/main.go", "./src/make.go"}},
		{one, filepath.Join(top, "work") + "/srv", []string{filepath.Join(top, "work") + "/srv.txt"}},
		{one, "src/deep/", []string{"src/deep/x"}},
		{one, "none", nil}, {one, "none/", nil}, {one, "srv.txt/", nil}, {one, ".", nil}, {one, "a.l", nil},
		{one, "../", nil}, {one, "../out", nil}, {one, "leave/", nil}, {one, "/", nil}, {one, "/etc/pass", nil}, {one, top +
			"/out", nil},
		{one, ".git/", nil}, {one, "store/", nil}, {one, "sto", nil}, {one, "a\x00/", nil}, {one, "src/../../", nil},
		{two, "", []string{"work/", "more/"}}, {two, "mo", []string{"more/"}}, {two, "work/sr", []string{
			"work/src/", "work/srv.txt",
		}},
		{two, "src/", []string{"src/deep/", "src/main.go", "src/make.go"}}, {source.Set{}, "", nil},
	} {
		got := k.s.Complete(t.Context(), k.begun, 100, nil)
		if !slices.Equal(got.Names, k.want) || got.Total != len(k.want) || got.Incomplete && k.begun != ".git/" {
			t.Errorf("%q is completed by %+v, want %q", k.begun, got, k.want)
		}
		for _, name := range got.Names { // each is a name that can be gone on from
			if _, err := k.s.Locate(t.Context(), name); err != nil && name != "leave" {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if got := one.Complete(t.Context(), "", 2, nil); len(got.Names) != 2 || got.Total != 6 || got.Incomplete {
		t.Errorf("two of six: %+v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := one.Complete(ended, "", 100, nil); !got.Incomplete {
		t.Errorf("a walk that was ended: %+v", got)
	}
}

// TestCompleteIsBounded has a directory that is too large to be looked through.
func TestCompleteIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it makes 20,001 files")
	}
	dir := t.TempDir()
	for i := range 20_001 {
		if err := os.Symlink("x", filepath.Join(dir, fmt.Sprintf("f%05d", i))); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got := source.Set{Roots: []*tree.Root{r}}.Complete(t.Context(), "f", 100, nil)
	if len(got.Names) != 100 || got.Total != 20_000 || !got.Incomplete || got.Names[0] != "f00000" {
		t.Errorf("%d names of %d, part %v", len(got.Names), got.Total, got.Incomplete)
	}
}
