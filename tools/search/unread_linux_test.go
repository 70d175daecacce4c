package search

import (
	"regexp"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// A file that nobody can read is told by the name the caller would use, with its root.
func TestUnreadableFilesAreTold(t *testing.T) {
	s := toolstest.Roots(t, t.TempDir(), "/proc/self")
	a := must(t, Search(), s, args{"pattern": "nothing", "glob": "mem", "all": true})
	if named := regexp.MustCompile(
		`files could not be read: read [0-9]+/mem: input/output error`,
	); !named.MatchString(a.note()) {
		t.Errorf("told: %q", a.notes)
	}
}
