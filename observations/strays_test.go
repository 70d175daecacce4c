package observations

import (
	"bytes"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// A file with our name and no sidecar, of no process that is known to be dead, goes only by age.
func TestStraysGoByAge(t *testing.T) {
	c := newClock()
	c.at = time.Now()
	s := open(t, Options{Now: c.now})
	stray := dir(s, "observations/"+dataName("search", c.at, RandomID(), "txt"))
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

func TestClockSetBack(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, Quota: 300 << 10})
	future := keep(t, s, Provenance{}, corpus.Random(100<<10))
	c.pass(-30 * oneDay)
	expectWhole(t, s, future.ID)
	past := keep(t, s, Provenance{}, corpus.Random(100<<10))
	value(s.Prune(false))
	expectWhole(t, s, future.ID)
	expectWhole(t, s, past.ID)
	c.pass(2 * time.Minute)
	keep(t, s, Provenance{}, corpus.Random(100<<10)) // still, nothing is stuck
	expectTombstone(t, s, past.ID, whyQuota)
	consistent(t, s)
}

func TestLostState(t *testing.T) {
	for name, spoil := range map[string]func(path string){
		"deleted": func(path string) { must(t, os.Remove(path)) },
		"torn":    func(path string) { must(t, os.WriteFile(path, []byte(`{"v":1,"kept":12`), 0o600)) },
		"empty":   func(path string) { must(t, os.WriteFile(path, nil, 0o600)) },
		"strange": func(path string) { must(t, os.WriteFile(path, []byte(`{"v":7,"kept":-5}`), 0o600)) },
		"huge":    func(path string) { must(t, os.WriteFile(path, bytes.Repeat([]byte(" "), maxQuota), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			keep(t, s, Provenance{}, corpus.Random(100<<10))
			r := record(t, s, Provenance{}, corpus.Random(200<<10)) // it holds a reservation
			spoil(dir(s, quotaName))
			keep(t, s, Provenance{}, []byte("x"))
			_, _ = r.Write(corpus.Random(200 << 10))
			value(r.Commit(Stats{}))
			consistent(t, s)
		})
	}
}

// Many at once in one store of one process.
func TestConcurrentUse(t *testing.T) {
	s := open(t, Options{Quota: 64 << 20})
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 15 {
				text := corpus.Random(1 + (g*15+i)*1500)
				o := keep(t, s, Provenance{Tool: "search"}, text)
				r, err := s.Open(Local, o.ID)
				if err != nil {
					t.Error(err)
					return
				}
				back := make([]byte, len(text))
				if _, err := r.ReadAt(back, 0); err != nil || !bytes.Equal(back, text) {
					t.Errorf("read %v", err)
				}
				_ = r.Close()
				switch i % 5 {
				case 0:
					err = s.Remove(Local, o.ID)
				case 1:
					err = s.Pin(Local, o.ID, true)
				case 2:
					_, err = s.List(Local, true)
				case 3:
					_, err = s.Prune(false)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	consistent(t, s)
}
