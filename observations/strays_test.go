package observations

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

func TestClockSetBack(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
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
		expectTombstone(t, s, past.ID, backend.WhyQuota)
		consistent(t, s)
	})
}

// Many at once in one store of one process.
func TestConcurrentUse(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
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
	})
}
