package tree

import "testing"

func open(t testing.TB, dir string, denied ...string) *Root {
	t.Helper()
	r, err := Open(dir, denied...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
