package files_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

const ownerQuota = 1 << 20

// by is what an owner makes.
func by(owner string) Provenance { return Provenance{Owner: owner, Tool: "run"} }

func ledgerOf(t testing.TB, s *Store) (l files.Ledger) {
	t.Helper()
	must(t, json.Unmarshal(value(os.ReadFile(dir(s, files.QuotaName))), &l))
	return l
}

// byOwner measures what the files of each owner take, with tombstones.
func byOwner(t testing.TB, s *Store) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	for id, e := range value(s.f.Scan(true)) {
		sizes[value(s.Owner(id))] += e.Size
	}
	return sizes
}

// exact checks that the quota file is right for each owner, and that none is over its quota.
func exact(t testing.TB, s *Store) {
	t.Helper()
	consistent(t, s)
	sizes := byOwner(t, s)
	if l := ledgerOf(t, s); !maps.Equal(l.Owners, sizes) || len(l.HeldBy) > 0 {
		t.Errorf("the quota file says %v, held by %v; the files take %v", l.Owners, l.HeldBy, sizes)
	}
	for owner, n := range sizes {
		if n > ownerQuota {
			t.Errorf("%s has %d bytes of %d", owner, n, ownerQuota)
		}
	}
}

// TestOwnerQuota has one owner write without end: it loses its own least recently used, no other loses anything.
func TestOwnerQuota(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, OwnerQuota: ownerQuota})
	old := keep(t, s, by("ann"), make([]byte, 300_000)) // the oldest of all
	var mine []Observation
	for range 2 {
		c.pass(files.FreshFor)
		mine = append(mine, keep(t, s, by("bob"), make([]byte, 400_000)))
	}
	c.pass(files.FreshFor)
	dataOf(t, s, "bob", mine[0].ID) // now the second is used least recently
	c.pass(files.FreshFor)
	last := keep(t, s, by("bob"), make([]byte, 400_000))
	must(t, s.Verify("ann", old.ID))
	must(t, s.Verify("bob", mine[0].ID))
	must(t, s.Verify("bob", last.ID))
	_, err := s.Stat("bob", mine[1].ID)
	var expired *ExpiredError
	if !errors.As(err, &expired) || expired.Observation.Why != whyQuota {
		t.Errorf("the least recently used: %v", err)
	}
	exact(t, s)
	for range 60 { // tombstones must not fill the quota
		c.pass(2 * files.FreshFor)
		last = keep(t, s, Provenance{Owner: "bob", Tool: "run", Name: strings.Repeat("n", 200)}, make([]byte, 400_000))
	}
	must(t, s.Verify("bob", last.ID))
	must(t, s.Remove("bob", last.ID))
	exact(t, s)
	must(t, s.Verify("ann", old.ID))
}

// TestOwnerQuotaIsUsedUp has nothing that could be evicted.
func TestOwnerQuotaIsUsedUp(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, OwnerQuota: ownerQuota})
	first := keep(t, s, by("bob"), make([]byte, 1_000_000))
	scans := 0
	s.Disk().Fault = func(op, name string) error {
		scans += map[string]int{"list " + storefs.ObservationsDir: 1}[op+" "+name]
		return nil
	}
	for i := range 20 {
		r := record(t, s, by("bob"), make([]byte, 40_000))
		if _, err := r.Commit(Stats{}); !errors.Is(err, ErrNoRoom) || !errors.Is(err, ErrOwnerQuota) ||
			err.Error() != "not kept: quota of this identity" {
			t.Errorf("write %d: %v", i, err)
		}
		must(t, r.Discard())
	}
	expect.Equal(t, scans, 1, "scans of the store, in which nothing could be evicted")
	s.Disk().Fault = nil
	keep(t, s, by("ann"), make([]byte, 900_000))
	must(t, s.Verify("bob", first.ID))
	exact(t, s)
	c.pass(2 * files.FreshFor)
	large := record(t, s, by("bob"), make([]byte, ownerQuota)) // what fits is kept, and the rest is reported
	o := value(large.Commit(Stats{}))
	if o.Bytes == 0 || o.Dropped == 0 || o.Bytes+o.Dropped != ownerQuota || o.Cause != ErrOwnerQuota.Error() {
		t.Errorf("%d kept, %d dropped: %q", o.Bytes, o.Dropped, o.Cause)
	}
	exact(t, s)
}

// TestOwnerQuotaLedger has ledgers of other programs, and torn ones.
func TestOwnerQuotaLedger(t *testing.T) {
	for name, change := range map[string]func(path string, text []byte){
		"torn":    func(path string, text []byte) { must(t, os.WriteFile(path, text[:len(text)/2], 0o600)) },
		"missing": func(path string, _ []byte) { must(t, os.Remove(path)) },
		"an older version's": func(path string, text []byte) {
			var all map[string]any
			must(t, json.Unmarshal(text, &all))
			delete(all, "owners")
			delete(all, "held_by")
			must(t, os.WriteFile(path, value(json.Marshal(all)), 0o600))
		},
		"none":     func(string, []byte) {},
		"of zeros": func(path string, text []byte) { must(t, os.WriteFile(path, make([]byte, len(text)), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{OwnerQuota: ownerQuota})
			keep(t, s, by("ann"), make([]byte, 300_000))
			keep(t, s, by("bob"), make([]byte, 500_000))
			writing := record(t, s, by("bob"), make([]byte, 200_000))
			change(dir(s, files.QuotaName), value(os.ReadFile(dir(s, files.QuotaName))))
			r := record(t, s, by("bob"), make([]byte, 500_000)) // over its quota, whoever counted
			if _, err := r.Commit(Stats{}); err == nil && r.Dropped() == 0 {
				t.Error("an owner got more than its quota")
			}
			must(t, r.Discard())
			value(writing.Commit(Stats{}))
			keep(t, s, by("ann"), make([]byte, 100_000))
			exact(t, s)
		})
	}
}

// TestOwnerQuotaOfSomeProcesses has processes with and without the limit: those without go on counting, until they count
// all files again.
func TestOwnerQuotaOfSomeProcesses(t *testing.T) {
	c := newClock()
	at := filepath.Join(t.TempDir(), "store")
	free := open(t, Options{Dir: at, Now: c.now})
	before := keep(t, free, by("ann"), make([]byte, 300_000))
	if l := ledgerOf(t, free); l.Owners != nil {
		t.Errorf("without a limit: %v", l.Owners)
	}
	s := open(t, Options{Dir: at, Now: c.now, OwnerQuota: ownerQuota})
	keep(t, s, by("bob"), []byte("text"))
	exact(t, s)
	keep(t, free, by("bob"), make([]byte, 100_000))
	must(t, free.Remove("ann", before.ID))
	exact(t, s)
	value(free.Prune(false))
	if l := ledgerOf(t, free); l.Owners != nil {
		t.Errorf("after a count without a limit: %v", l.Owners)
	}
	keep(t, s, by("bob"), []byte("text"))
	exact(t, s)
}

// TestOwnerQuotaHoldsBetweenWriters has two processes write for three owners at once.
func TestOwnerQuotaHoldsBetweenWriters(t *testing.T) {
	at := scratch(t)
	var all sync.WaitGroup
	stores := []*Store{open(t, Options{Dir: at, OwnerQuota: ownerQuota}), open(t, Options{Dir: at, OwnerQuota: ownerQuota})}
	for i := range 12 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 20 {
				r := value(stores[i%2].Record(by(fmt.Sprint("owner", i%3))))
				_, _ = r.Write(make([]byte, random.IntN(200_000)))
				if _, err := r.Commit(Stats{}); err != nil && !errors.Is(err, ErrNoRoom) {
					t.Error(err)
				}
				must(t, r.Discard())
			}
		})
	}
	all.Wait()
	exact(t, stores[0])
	l := ledgerOf(t, stores[0])
	expect.Equal(t, len(l.Owners), 3, "owners")
}

// TestOwnerQuotaOnAFailingDisk has a sidecar that cannot be read: its owner does not get more for it, and others write on.
func TestOwnerQuotaOnAFailingDisk(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now, OwnerQuota: ownerQuota})
	o := keep(t, s, by("bob"), make([]byte, 1_000_000))
	s.Disk().Fault = func(op, name string) error {
		if strings.Contains(name, string(o.ID)) && op != "stat" {
			return errors.New("the disk failed")
		}
		return nil
	}
	s.f.ForgetOwner(o.ID) // as another process, which has not read it
	c.pass(2 * files.FreshFor)
	for _, owner := range []string{"bob", "ann"} {
		r := record(t, s, by(owner), make([]byte, 60_000))
		if _, err := r.Commit(Stats{}); errors.Is(err, ErrOwnerQuota) != (owner == "bob") || owner == "ann" && err != nil {
			t.Errorf("%s: %v", owner, err)
		}
		must(t, r.Discard())
	}
	s.Disk().Fault = nil
	must(t, s.Verify("bob", o.ID))
	c.pass(2 * files.FreshFor)
	keep(t, s, by("bob"), make([]byte, 60_000))
	exact(t, s)
}
