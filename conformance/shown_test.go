package conformance

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// TestShownTextIsTraced calls a tool of the built server over stdio: another process reads the exact text of its
// answer, unless that is switched off.
func TestShownTextIsTraced(t *testing.T) {
	dir := plainDir(t)
	write(t, filepath.Join(dir, "a.txt"), strings.Repeat("a line of text\n", 200))
	for _, flags := range [][]string{nil, {"--no-keep-shown"}} {
		store := filepath.Join(t.TempDir(), "store")
		c := serveStdio(t, dir, append(flags, "--store", store)...)
		answered := expect.Value(c.call("search", object{"pattern": "line"}))(t)
		log := trace.InDir(trace.Dir(store))
		found := 0
		for call, err := range log.Read(time.Time{}, nil) {
			expect.Must(t, err)
			_, got, err := log.Shown(call.Ref)
			switch {
			case flags != nil:
				expect.ErrorIs(t, err, trace.ErrNotKept)
			case call.Via == trace.ViaList:
				expect.Must(t, err)
				expect.Has(t, got.Text, `"search"`, "the list of tools")
			default:
				expect.Must(t, err)
				found++
				expect.Equal(t, got.Text, strings.Join(answered.blocks, "\n\n"))
				expect.Equal(t, string(got.Args), `{"pattern":"line"}`)
				expect.Equal(t, call.ShownBytes, int64(len(got.Text)))
				expect.Equal(t, call.Group(), call.Session+" "+call.At.Format(time.DateOnly), "the group of a process")
			}
			if call.ShownBytes == 0 {
				t.Errorf("%s %s showed no bytes", call.Via, call.Tool)
			}
		}
		if flags == nil {
			expect.Equal(t, found, 1, "calls")
		}
	}
}
