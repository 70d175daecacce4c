package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/records"
)

// TestDamagedRecord: a record that cannot be read is an error, because a server without one is trusted with all its
// tools.
func TestDamagedRecord(t *testing.T) {
	store := records.InDir(t.TempDir())
	all := RecordsIn(store)
	path := store.Where(recordOf("a"))
	expect.Must(t, os.Mkdir(filepath.Dir(path), 0o700))
	trust := func(one *Record) (*Record, error) {
		if one == nil {
			one = &Record{V: 1}
		}
		return one, nil
	}
	for name, damage := range map[string]func() error{
		"cut":       func() error { return os.WriteFile(path, []byte(`{"v":1,"comm`), 0o600) },
		"empty":     func() error { return os.WriteFile(path, nil, 0o600) },
		"directory": func() error { return os.Mkdir(path, 0o700) },
	} {
		expect.Must(t, damage())
		for _, err := range []error{all.Change("a", trust), expect.Err(all.Load("a"))} {
			if err == nil || !strings.Contains(err.Error(), "a.json") {
				t.Errorf("%s: %v", name, err)
			}
		}
		expect.Must(t, os.Remove(path))
	}
	expect.Must(t, all.Change("a", trust)) // the control
}
