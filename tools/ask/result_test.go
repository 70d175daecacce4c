package ask

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A word that no indexed file has may be in one that is not indexed yet.
func TestCoverageOfAPart(t *testing.T) {
	c := Coverage{Files: 4, Searched: 4, Absent: []string{"pacer"}}
	expect.Equal(t, c.text(1), "coverage: 4 files searched, 0 with facts; no file has: pacer\n")
	c.Searched = 1
	expect.Equal(t, c.text(1), "coverage: 1 file searched, 0 with facts; not indexed yet 3 (the index covers 25 %; ask again); "+
		"no indexed file has: pacer\n")
}
