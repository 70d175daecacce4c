package remote_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/remote"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
	"github.com/mcp-funnel/mcp-funnel/system/database/databasetest"
)

var made = backend.Provenance{Owner: owner, Tool: "search"}

// begin writes bytes as far as they go without a commit.
func begin(t *testing.T, s *remote.Store, data []byte) backend.Writer {
	t.Helper()
	w := expect.Value(s.Create(made, time.Now()))(t)
	for at := 0; at < len(data); at += backend.BlockSize {
		part := data[at:min(len(data), at+backend.BlockSize)]
		n, err := w.Room(int64(len(part)), 1<<20)
		expect.Must(t, err)
		expect.Equal(t, int(n), len(part), "room")
		expect.Value(w.Write(part))(t)
	}
	return w
}

// aged makes reservations old enough for a sweep to look at them.
const aged = "update reservations set at = at - interval '2 minutes'"

// TestSweepAfterADeath has a process die at each step of writing. A sweep of another one removes all that is left of
// it; what a living process writes stays, and can be committed.
func TestSweepAfterADeath(t *testing.T) {
	p := remotetest.New(t)
	dead, _ := p.Open(t, backend.Options{})
	alive, _ := p.Open(t, backend.Options{})
	whole := expect.Value(keep(alive, bytesOf(300<<10)))(t)
	begin(t, dead, bytesOf(100<<10))                                     // a reservation
	begin(t, dead, bytesOf(9<<20))                                       // and a part
	expect.Must(t, remote.StoreObject(begin(t, dead, bytesOf(200<<10)))) // and an object
	expect.Must(t, remote.StoreObject(begin(t, dead, bytesOf(10<<20))))  // of parts
	data := bytesOf(11 << 20)
	w := begin(t, alive, data)
	has := func(what string, objects, uploads, writers int) {
		t.Helper()
		gotObjects, gotUploads, err := alive.InBucket()
		expect.Must(t, err)
		expect.Equal(t, gotObjects, objects, what+": objects")
		expect.Equal(t, gotUploads, uploads, what+": uploads")
		p.Consistent(t, writers)
	}
	databasetest.Exec(t, p.Database, aged)
	expect.Value(alive.Prune(false))(t)
	has("the control, while both live", 3, 2, 5)
	dead.Die()
	expect.Value(alive.Prune(false))(t)
	has("after the death", 1, 1, 1)
	o := expect.Value(commit(w, made, data))(t)
	has("after a commit", 2, 0, 0)
	expect.Must(t, read(alive, o.ID, data, 0, -1))
	expect.Must(t, read(alive, whole.ID, bytesOf(300<<10), 0, -1))
}

// TestTakenForDead has a sweep take a process for dead that lives, such as one that was suspended. It can neither write
// on nor commit, and nothing of what it wrote is left or counted.
func TestTakenForDead(t *testing.T) {
	p := remotetest.New(t)
	a, _ := p.Open(t, backend.Options{})
	b, _ := p.Open(t, backend.Options{})
	data := bytesOf(300 << 10)
	on, ready := begin(t, a, data), begin(t, a, data)
	expect.Must(t, remote.StoreObject(ready)) // it is only to be committed
	databasetest.Exec(t, p.Database, aged, "update reservations set process = 'suspended'")
	expect.Value(b.Prune(false))(t)
	p.Consistent(t, 0)
	_, err := on.Room(32<<20, 0)
	expect.Fails(t, err, "taken for dead")
	if errors.Is(err, backend.ErrNoRoom) {
		t.Errorf("what is written would be kept in part: %v", err)
	}
	p.Consistent(t, 0)
	_, err = commit(ready, made, data)
	expect.Fails(t, err, "taken for dead")
	for _, w := range []backend.Writer{on, ready} {
		expect.Must(t, w.Discard())
		_, err := b.Stat(owner, w.ID())
		expect.ErrorIs(t, err, backend.ErrNotFound)
	}
	p.Consistent(t, 0)
	list, _, err := b.Listing("", true, false)
	expect.Must(t, err)
	expect.Equal(t, len(list), 0, "observations")
}

// TestUsageIsExact has two replicas do random things at once, with quotas that are used up. What is counted is what the
// rows hold.
func TestUsageIsExact(t *testing.T) {
	p := remotetest.New(t)
	var passed atomic.Int64
	start := time.Now()
	options := backend.Options{
		Quota: 1500 << 10, OwnerQuota: 600 << 10, MaxAge: 5 * time.Minute,
		Now: func() time.Time { return start.Add(time.Duration(passed.Load())) },
	}
	a, _ := p.Open(t, options)
	b, _ := p.Open(t, options)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	var all []backend.Observation
	counts := map[string]int{}
	var group sync.WaitGroup
	for i := range 4 {
		s := []*remote.Store{a, b}[i%2]
		random := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // no secret
		group.Go(func() {
			for range 50 {
				passed.Add(int64(4 * time.Second))
				as := []string{"ann", "bob", "carol", "dan"}[random.IntN(4)]
				mu.Lock()
				var o backend.Observation
				if len(all) > 0 {
					o = all[random.IntN(len(all))]
				}
				mu.Unlock()
				verb, err := "", error(nil)
				switch n := random.IntN(10); {
				case n < 5 || o.ID == "":
					verb = "keep"
					if o, err = keepAs(s, as, bytesOf([]int{1, 900, 60 << 10, 70 << 10, 400 << 10}[random.IntN(5)])); err == nil {
						mu.Lock()
						all = append(all, o)
						mu.Unlock()
					}
				case n < 6:
					verb = "discard"
					var w backend.Writer
					if w, err = s.Create(backend.Provenance{Owner: as}, start); err == nil {
						_, err = w.Room(int64(random.IntN(1<<20)), 1<<20)
						err = errors.Join(err, w.Discard())
					}
				case n < 7:
					verb, err = "remove", s.Remove(o.Owner, o.ID, backend.WhyRemoved, "")
				case n < 8:
					verb, err = "pin", s.Pin(o.Owner, o.ID, random.IntN(3) == 0)
				default:
					verb = "prune"
					_, err = s.Prune(false)
				}
				if err != nil {
					verb += ", failed"
					is := func(target error) bool { return errors.Is(err, target) }
					if !slices.ContainsFunc([]error{backend.ErrNoRoom, backend.ErrExpired, backend.ErrNotFound}, is) {
						t.Error(err)
					}
				}
				mu.Lock()
				counts[verb]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Log(counts)
	p.Consistent(t, 0)
	u := expect.Value(a.Usage())(t)
	if u.Bytes > 2*u.Quota || counts["keep"] == 0 || counts["keep, failed"] == 0 {
		t.Errorf("%d bytes with a quota of %d; %v", u.Bytes, u.Quota, counts)
	}
}
