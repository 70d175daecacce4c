package source

import "testing"

// TestVersionsOfOwners remembers a text for one owner: another one does not see it, even by its path and hash.
func TestVersionsOfOwners(t *testing.T) {
	t.Parallel()
	const path, hash = "/f", "0123456789abcdef"
	all := NewVersions()
	all.Of("one").Remember(path, hash, []byte("text"))
	if text, ok := all.Of("one").Text(path, hash[:8]); !ok || string(text) != "text" {
		t.Errorf("%q, %v", text, ok)
	}
	for _, other := range []*Versions{all.Of("two"), all, (*Versions)(nil).Of("one")} {
		if text, ok := other.Text(path, hash); ok {
			t.Errorf("another owner sees %q", text)
		}
	}
}
