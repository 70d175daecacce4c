// Package toolstest has helpers for tests that call tools.
package toolstest

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// During is an Output that calls a function before the first row or write of a tool.
type During struct {
	tools.Output
	First func() // nil after it was called
}

type duringPage struct {
	tools.Page
	during *During
}

// Page returns the page of the Output, whose rows call First too.
func (d *During) Page() tools.Page { return duringPage{d.Output.Page(), d} }

func (d *During) runFirst() {
	if d.First != nil {
		d.First()
		d.First = nil
	}
}

// Row calls First once, then Row of the page.
func (p duringPage) Row(b []byte, more tools.Call) error {
	p.during.runFirst()
	return p.Page.Row(b, more)
}

// Write calls First once, then Write of the Output.
func (d *During) Write(b []byte) (int, error) {
	d.runFirst()
	return d.Output.Write(b)
}

// Roots returns the sources of a local caller: the roots dirs, closed at the end of the test.
func Roots(t testing.TB, dirs ...string) source.Set {
	t.Helper()
	s := source.Set{}
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
