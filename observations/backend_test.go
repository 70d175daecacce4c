package observations

import (
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

// TestOtherBackend checks that a store on another backend names no files of its cache; the control is the directory
// itself.
func TestOtherBackend(t *testing.T) {
	local := value(files.Open(roomy(Options{Dir: t.TempDir()})))
	defer func() { _ = local.Close() }()
	for isLocal, b := range map[bool]backend.Backend{true: local, false: struct{ backend.Backend }{local}} {
		s := OpenOn(b, local, Options{MaxObservation: 10})
		o := keep(t, s, Provenance{}, []byte("more than it may have")) // the limits are those of the options
		expect.Equal(t, string(dataOf(t, s, Local, o.ID)), "more than ", "what is stored")
		expect.OK(t, s.Verify(Local, o.ID))
		expect.Equal(t, s.Dir(), local.Dir(), "directory")
		expect.Equal(t, s.SavedTo(o) != "", isLocal, "it has a path")
		_, found := s.Find(local.SavedTo(o))
		expect.Equal(t, found, isLocal, "it is found by its path")
	}
}
