package conformance

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestStoredRunKeepsItsStreams reads the stored output of a command in another process: kind, totals and jq are those
// of its standard output, and lines of standard error are marked.
func TestStoredRunKeepsItsStreams(t *testing.T) {
	needsContainment(t)
	dir := plainDir(t)
	store := t.TempDir() + "/store"
	c := serveStdio(t, dir, "--toolsets", "core,shell", "--store", store)
	a := expect.Value(c.call(
		"run",
		object{
			"command": `echo '['; for i in $(seq 2000); do echo "{\"n\":$i},"; done; echo '{"n":0}'; sleep .1; ` +
				`echo warned >&2; sleep .1; echo ']'`,
		},
	))(t)
	id := anyID.FindString(a.text())
	later := serveStdio(t, dir, "--store", store)
	for tool, k := range map[string]struct {
		args object
		want []string
	}{
		"read": {object{"path": id}, []string{"; json; 2001 elements; 1 line of standard error", "\nstderr| warned\n]"}},
		"jq":   {object{"source": id, "filter": "length"}, []string{"2001"}},
		"grep": {object{"source": id, "pattern": "warned"}, []string{"warned"}},
	} {
		got := expect.Value(later.call(tool, k.args))(t)
		for _, want := range k.want {
			expect.Has(t, got.text(), want, tool)
		}
	}
}
