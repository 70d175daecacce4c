// Package toolstest has what tests need to call tools.
//
// It is imported from test files only, and records nothing: what a tool says is recorded as each test needs it.
package toolstest

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// During is an Output that has something happen when the first of what the tool says comes.
type During struct {
	tools.Output
	First func() // nil: it has happened
}

func (d *During) once() {
	if d.First != nil {
		d.First()
		d.First = nil
	}
}

// Row is that of the Output, after First.
func (d *During) Row(b []byte, more tools.Call) error {
	d.once()
	return d.Output.Row(b, more)
}

// Write is that of the Output, after First.
func (d *During) Write(b []byte) (int, error) {
	d.once()
	return d.Output.Write(b)
}

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
