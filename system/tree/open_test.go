package tree

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func open(t testing.TB, dir string, denied ...string) *Root {
	t.Helper()
	r := expect.Value(Open(dir, denied...))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}
