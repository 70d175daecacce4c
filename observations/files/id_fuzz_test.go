package files

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// FuzzID checks that every name is refused, or parsed to an ID that is printed as it was read, and that no name leads
// to another file.
func FuzzID(f *testing.F) {
	for _, s := range []string{
		"k3v9q2m7x4ab", "obs:k3v9q2m7x4ab", "OBS:K3V9Q2M7X4AB", "observation://k3v9q2m7x4ab", "obs:", "obs:../../x", "observation://../k3v9q2m7x4ab", "obs:k3v9q2m7x4ab/..",
		"/s/observations/search_20260101T000000_k3v9q2m7x4ab.txt", "/s/observations/../x", "/s/observations//a_b_20260101T000000_k3v9q2m7x4ab.ndjson", "12-abcdefgh_k3v9q2m7x4ab", "search_20260101T000000_k3v9q2m7x4ab.txt", "\x00",
	} {
		f.Add(s)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &Store{Directory: Directory{files: &files{dir: "/s"}}}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := backend.ParseID(text)
		switch {
		case err != nil && (id != "" || len(err.Error()) > 400):
			t.Errorf("%q: %q, an error of %d bytes", text, id, len(err.Error()))
		case err == nil:
			if again, err := backend.ParseID(backend.Prefix + string(id)); err != nil || again != id ||
				!strings.HasSuffix(strings.ToLower(text), string(id)) {
				t.Errorf("%q: %q, then %q %v", text, id, again, err)
			}
			if back, ok := backend.ParseDataName(backend.DataName(text, at, id, text)); !ok || back != id {
				t.Errorf("%q: its data file is %q", text, backend.DataName(text, at, id, text))
			}
		}
		if id, ok := s.Find(text); ok &&
			(!id.Valid() || !strings.HasPrefix(text, "/") || !strings.Contains(text, string(id))) {
			t.Errorf("%q is taken for %q", text, id)
		}
		if id, ok := backend.ParseDataName(text); ok &&
			(!id.Valid() || strings.ContainsAny(text, "/\\\x00") || strings.HasPrefix(text, ".")) {
			t.Errorf("%q is taken for a data file of %q", text, id)
		}
		if proc, id, ok := parseKey(text); ok && key(proc, id) != text {
			t.Errorf("%q: %q %q", text, proc, id)
		}
	})
}
