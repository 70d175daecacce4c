package cli

import "testing"

// FuzzConfig has any text read as settings whose names are known, or refused in few words.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"large-lines: 50\nroot: [a, b]\n", "root:\n  - a\n  - b\n", "# only a remark\n", "a: &x [*x]\n",
		"---\nquota: 1GiB\n---\nquota: 2GiB\n", "quota: !!binary aGk=\n", "? a\n: b\n", "enabled: yes\n", "{large-lines: 1}",
		"large_lines: 1", "\t", "\xff", "<<: *a", "root: |\n  text\n",
		"max-age: 7d # remark\n", "\"large-lines\": 0x10\n", "config: other.yaml\n",
	} {
		f.Add([]byte(text))
	}
	known := knownSettings(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &FileResolver{}
		err := r.parse("funnel.yaml", text, known)
		if err != nil && len(err.Error()) > 2500 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		for name := range r.values {
			if known[name] == nil || name == "config" {
				t.Errorf("%q is taken as a setting", name)
			}
		}
	})
}
