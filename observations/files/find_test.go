package files_test

import (
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	s := open(t, Options{})
	good := "search_20261120T143022_k3v9q2m7x4ab.ndjson"
	for path, want := range map[string]bool{
		filepath.Join(s.Dir(), "observations", good):        true,
		s.Dir() + "/observations/../observations/" + good:   true,
		filepath.Join(s.Dir(), good):                        false,
		filepath.Join(s.Dir(), "tmp", good):                 false,
		"observations/" + good:                              false,
		filepath.Join(s.Dir(), "observations", "sub", good): false,
		"": false,
	} {
		if id, ok := s.Find(path); ok != want || (ok && id != "k3v9q2m7x4ab") {
			t.Errorf("Find(%q) = %q, %v", path, id, ok)
		}
	}
}
