package files_test

import (
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// However far a commit or removal by one process has come, another process sees and reports no damage.
func TestNothingIsDamagedMeanwhile(t *testing.T) {
	type step func(s *Store, c *clock) error
	var r *Recording
	var id ID
	kept := func(s *Store, _ *clock) error { id = keep(t, s, Provenance{}, corpus.Random(100)).ID; return nil }
	removed := func(s *Store, _ *clock) error { return s.Remove(Local, id) }
	pruned := func(s *Store, _ *clock) error { return second(s.Prune(false)) }
	for name, k := range map[string]struct {
		age         time.Duration // by the time that it is done
		before, now step
	}{
		"commit": {10 * time.Minute, func(s *Store, c *clock) error { // of what was written long ago
			r = record(t, s, Provenance{}, corpus.Random(2*blockSize))
			for _, name := range names(t, s, storefs.TmpDir) {
				must(t, s.Disk().Touch(storefs.TmpDir+"/"+name, c.now()))
			}
			return nil
		}, func(*Store, *clock) error { return second(r.Commit(Stats{})) }},
		"remove": {10 * time.Minute, kept, removed},
		"expire": {30 * time.Minute, kept, pruned},
		"forget": {files.TombstoneAge + time.Hour, func(s *Store, c *clock) error { _ = kept(s, c); return removed(s, c) }, pruned},
	} {
		// in the midst of what the other does, or the other in the midst of looking
		for _, looks := range []bool{true, false} {
			for nth, n := 1, 1; nth <= n; nth++ {
				n = 0
				c := newClock()
				o := Options{Dir: scratch(t), Now: c.now, MaxAge: 20 * time.Minute}
				a, b := open(t, o), open(t, o)
				c.pass(-k.age)
				must(t, k.before(a, c))
				c.pass(k.age)
				b.f.SetNextTidy(c.now().Add(time.Hour)) // else it holds the lock that the other waits for
				does, look, disk := func() { must(t, k.now(a, c)) }, func() { sound(t, b, name, looks, nth) }, a.Disk()
				if !looks {
					does, look, disk = look, does, b.Disk()
				}
				disk.Fault = func(string, string) error {
					if n++; n == nth {
						look()
					}
					return nil
				}
				does()
				disk.Fault = nil
			}
		}
	}
}

// sound checks that a store reports no damage.
func sound(t *testing.T, s *Store, during string, looks bool, nth int) {
	t.Helper()
	if ids, err := s.Damaged(); err != nil || len(ids) > 0 {
		t.Errorf("%s, looking %t, operation %d: damaged %v, %v", during, looks, nth, ids, err)
	}
	list, err := s.List("", true)
	if err != nil {
		t.Errorf("%s, looking %t, operation %d: %v", during, looks, nth, err)
	}
	for _, o := range list {
		if o.Lost {
			t.Errorf("%s, looking %t, operation %d: lost %s", during, looks, nth, o.ID)
		}
	}
}
