package marked

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const begin, end = "<!-- begin: make it -->\n", "<!-- end: make it -->\n"
	if err := os.WriteFile(path, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Rewrite(path, "make it", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before\n"+begin+"new\n"+end+"after\n" {
		t.Errorf("%v: %q", err, got)
	}
	if err := Rewrite(path, "make more", "new\n"); err == nil {
		t.Error("a page without the marks was rewritten")
	}
	for _, page := range []string{"", begin, end + begin} {
		if _, err := Replace(page, "make it", ""); err == nil {
			t.Errorf("%q has no marks", page)
		}
	}
}
