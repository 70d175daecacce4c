package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestGrantHints runs commands that fail, and compares which grant is named. Those that were refused nothing must name
// none, whatever they print.
func TestGrantHints(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, nil, 0o644); err != nil { //nolint:gosec // a test's file
		t.Fatal(err)
	}
	fill := strings.NewReplacer("SECRET", secret, "OUTSIDE", outside)
	for _, c := range corpus.Rows[tried](t, "hints.ndjson") {
		c.Command = fill.Replace(c.Command)
		t.Run(c.Name, func(t *testing.T) {
			for _, program := range []string{"curl", "python3"} {
				if strings.Contains(c.Command, program+" ") {
					needs(t, program)
				}
			}
			b := newBench(t, shell.Options{})
			text, answer := b.run(c.Command)
			expect.MustEqual(t, answer.Receipts[0].Status, "failure", "it did not fail: %s", text)
			if c.Want == "" && strings.Contains(text, "--allow-") || !strings.Contains(text, c.Want) {
				t.Errorf("want %q: %s", c.Want, text)
			}
		})
	}
}
