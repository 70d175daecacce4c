package fs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// A file that becomes shorter while it is read is named, however it was asked for.
func TestFilesThatBecomeShorterWhileTheyAreRead(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"a.log", "a.log became shorter during this call"},
		{"a.l*", "a.log became shorter during this call"},
		{"*.{log,txt}", "a.log became shorter during this call"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a.log": strings.Repeat(
			"a line of some length\n", 100_000,
		), "b.txt": "another\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args, err := json.Marshal(map[string]string{"path": c.path})
		if err != nil {
			t.Fatal(err)
		}
		a := &answer{counts: map[string]float64{}}
		out := &toolstest.During{Output: a}
		out.First = func() {
			if err := os.Truncate(filepath.Join(dir, "a.log"), 1000); err != nil {
				t.Error(err)
			}
		}
		err = Read().Run(t.Context(), tools.Input{Args: args, Sources: toolstest.Roots(t, dir)}, out)
		if said := strings.Join(a.notes, "\n"); err != nil || out.First != nil || strings.Count(said, c.want) != 1 ||
			strings.Contains(said, "b.txt") {
			t.Errorf("%s: %v, %q, want %q", c.path, err, said, c.want)
		}
	}
}
