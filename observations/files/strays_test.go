package files_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

// A file with our name and no sidecar, of no process that is known to be dead, goes only by age.
func TestStraysGoByAge(t *testing.T) {
	c := newClock()
	c.at = time.Now()
	s := open(t, Options{Now: c.now})
	stray := dir(s, "observations/"+backend.DataName("search", c.at, backend.RandomID(), "txt"))
	must(t, os.WriteFile(stray, []byte("x"), 0o600))
	value(s.Prune(false))
	if _, err := os.Stat(stray); err != nil {
		t.Fatalf("fresh, and removed: %v", err)
	}
	c.pass(8 * oneDay)
	value(s.Prune(false))
	if _, err := os.Stat(stray); err == nil {
		t.Error("eight days old, and it stays")
	}
	consistent(t, s)
}

func TestLostState(t *testing.T) {
	for name, spoil := range map[string]func(path string){
		"deleted": func(path string) { must(t, os.Remove(path)) },
		"torn":    func(path string) { must(t, os.WriteFile(path, []byte(`{"v":1,"kept":12`), 0o600)) },
		"empty":   func(path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"strange": func(path string) { must(t, os.WriteFile(path, []byte(`{"v":7,"kept":-5}`), 0o600)) },
		"huge":    func(path string) { must(t, os.WriteFile(path, bytes.Repeat([]byte(" "), files.MaxQuota), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			keep(t, s, Provenance{}, corpus.Random(100<<10))
			r := record(t, s, Provenance{}, corpus.Random(200<<10)) // it holds a reservation
			spoil(dir(s, files.QuotaName))
			keep(t, s, Provenance{}, []byte("x"))
			_, _ = r.Write(corpus.Random(200 << 10))
			value(r.Commit(Stats{}))
			consistent(t, s)
		})
	}
}
