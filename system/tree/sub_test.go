package tree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestSub(t *testing.T) {
	top := t.TempDir()
	plant(t, top, "a/b/c/", "a/secret/in/", "a/f", "a/b/g", "a/secret/s", "other/o", "a/b/up -> ..",
		"a/b/out -> ../../other", "a/in -> b", "a/abs -> "+top+"/a/b", "a/leave -> "+top+"/other")
	r := open(t, filepath.Join(top, "a"), filepath.Join(top, "a", "secret"))

	sub := expect.Value(r.Sub("b"))(t)
	defer func() { _ = sub.Close() }()
	if sub.Name() != "b" || sub.Dir() != filepath.Join(r.Dir(), "b") {
		t.Errorf("%s is %s", sub.Name(), sub.Dir())
	}
	f, _, err := sub.OpenFile("g")
	expect.Must(t, err)
	_ = f.Close()
	for _, name := range []string{"../f", "up/f", "out/o", filepath.Join(top, "a", "f")} {
		if _, _, err := sub.OpenFile(name); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rel, err := sub.Rel(filepath.Join(top, "a", "b", "g")); rel != "g" || err != nil {
		t.Errorf("an absolute name is %q, %v", rel, err)
	}
	for _, name := range []string{"in", "abs", ".", filepath.Join(top, "a", "b")} {
		s, err := r.Sub(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = s.Close()
	}
	for name, want := range map[string]error{
		"..": ErrOutside, "leave": ErrOutside, "b/out": ErrOutside, "secret": ErrDenied, "secret/in": ErrDenied,
		filepath.Join(top, "other"): ErrOutside, "f": nil, "none": os.ErrNotExist,
	} {
		s, err := r.Sub(name)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	all := expect.Value(r.Sub("."))(t)
	defer func() { _ = all.Close() }()
	if _, _, err := all.OpenFile("secret/s"); !errors.Is(err, ErrDenied) {
		t.Errorf("what is denied: %v", err)
	}
	for dir, want := range map[string]bool{
		top: true, filepath.Join(top, "a"): true, "/": true, filepath.Join(top, "a", "b"): false, filepath.Join(top, "other"): false,
		top + "/a-evil": false, filepath.Join(top, "other", "..", "a"): true,
	} {
		expect.Equal(t, r.Within(dir), want, "within %s", dir)
	}
}
