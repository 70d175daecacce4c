// Package toolstest has what tests need to call tools.
//
// It is imported from test files only, and is not an Output: what a tool says is recorded as each test needs it.
package toolstest

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Roots are what a local caller may name: what lies below dirs, until the test ends.
func Roots(t testing.TB, dirs ...string) tools.Sources {
	t.Helper()
	s := tools.Sources{Owner: observations.Local}
	for _, dir := range dirs {
		root, err := tree.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		s.Roots = append(s.Roots, root)
	}
	return s
}
