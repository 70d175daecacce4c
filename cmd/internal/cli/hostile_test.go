package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestNestedConfig: a file of nothing but nesting is refused.
func TestNestedConfig(t *testing.T) {
	for _, nesting := range []string{"[", "{", "- ", "? ", "a: [", `{"a":`, "[{"} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		expect.Must(t, os.WriteFile(path, []byte(strings.Repeat(nesting, maxConfig/len(nesting)-1)), 0o600))
		if err := new(FileResolver).read(path, nil); err == nil || !strings.Contains(err.Error(), "c.yaml") {
			t.Errorf("%q: %v", nesting, err)
		}
	}
}
