package observations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// TestFreshOutlivesItsAge sets a maximum age of one second. An observation that was used within the last minute can
// still be opened; one that was not has expired.
func TestFreshOutlivesItsAge(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now, MaxAge: time.Second})
		o := keep(t, s, Provenance{Tool: "run"}, []byte("text"))
		for range 3 { // each use counts
			c.pass(time.Minute - time.Second)
			dataOf(t, s, Local, o.ID)
		}
		c.pass(time.Minute)
		if _, err := s.Open(Local, o.ID); !errors.Is(err, ErrExpired) {
			t.Errorf("a minute after the last use: %v", err)
		}
	})
}

func TestAge(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now})
		made := Provenance{
			Tool: "run",
			Args: json.RawMessage(
				`{"command":"curl -H 'Authorization: Bearer aB3dEf6hIjKlMn0p' x","password":"hunt` + `er2"}`,
			),
		}
		old, used, pinned := keep(t, s, made, []byte("old")), keep(t, s, made, []byte("used")), keep(
			t, s, made, []byte("pinned"),
		)
		must(t, s.Pin(Local, pinned.ID, true))
		c.pass(6 * oneDay)
		dataOf(t, s, Local, used.ID) // counts as use
		c.pass(oneDay + time.Minute)
		expectWhole(t, s, used.ID)
		expectTombstone(t, s, old.ID, backend.WhyAge)
		expectWhole(t, s, pinned.ID)

		_, err := s.Open(Local, old.ID)
		for _, want := range []string{"obs:" + string(old.ID) +
			" expired on 2026-03-21 15:10 UTC", "run {", "on 2026-03-14 15:09 UTC", "repeat that call"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
		var stone *ExpiredError
		if !errors.As(err, &stone) {
			t.Fatal(err)
		}
		args := stone.Observation.Args
		if onDisk(s) {
			args = value(os.ReadFile(sidecarPath(s, old.ID)))
		}
		for _, secret := range []string{"aB3dEf6hIjKlMn0p", "hunter2"} {
			if bytes.Contains(args, []byte(secret)) {
				t.Errorf("the tombstone tells %q", secret)
			}
		}
		if err := s.Pin(Local, old.ID, true); !errors.Is(err, ErrExpired) {
			t.Errorf("pinning a tombstone: %v", err)
		}
		if err := s.Remove(Local, old.ID); !errors.Is(err, ErrExpired) {
			t.Errorf("removing a tombstone: %v", err)
		}
		if list, err := s.List(Local, false); err != nil || len(list) != 2 {
			t.Errorf("List = %d, %v", len(list), err)
		}
		list, err := s.List(Local, true)
		if err != nil || len(list) != 3 {
			t.Errorf("List with tombstones = %d, %v", len(list), err)
		}
		for _, o := range list {
			if o.Pinned != (o.ID == pinned.ID) || (o.Expired != nil) != (o.ID == old.ID) {
				t.Errorf("listed: %+v", o)
			}
		}
		must(t, s.Pin(Local, pinned.ID, false))
		expectTombstone(t, s, pinned.ID, backend.WhyAge)
		consistent(t, s)

		c.pass(100 * oneDay) // tombstones have their age too
		value(s.Prune(false))
		if _, err := s.Open(Local, old.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("a tombstone of 100 days: %v", err)
		}
		expectTombstone(t, s, used.ID, backend.WhyAge)
		consistent(t, s)
	})
}

func TestTombstonesAreBounded(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now, Quota: 256 << 10}) // 16 KiB for tombstones
		var ids []ID
		for i := range 100 {
			o := keep(t, s, Provenance{Tool: "search", Args: fmt.Appendf(nil, `{"pattern":"%d"}`, i)}, []byte("x"))
			ids = append(ids, o.ID)
			c.pass(time.Second)
			must(t, s.Remove(Local, o.ID))
		}
		value(s.Prune(false))
		expectTombstone(t, s, ids[99], backend.WhyRemoved)
		if _, err := s.Open(Local, ids[0]); !errors.Is(err, ErrNotFound) {
			t.Errorf("the oldest tombstone: %v", err)
		}
		if u, err := s.Usage(); err != nil || u.Bytes > 16<<10 || u.Bytes < 8<<10 {
			t.Errorf("%d bytes of tombstones, %v", u.Bytes, err)
		}
		consistent(t, s)
	})
}

func TestQuotaTakesTheLeastRecentlyUsed(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now, Quota: 1 << 20})
		var ids []ID
		for i := range 5 {
			made := Provenance{Tool: "search", Args: fmt.Appendf(nil, "%d", i)}
			ids = append(ids, keep(t, s, made, corpus.Random(150<<10)).ID)
			c.pass(2 * time.Minute)
		}
		must(t, s.Pin(Local, ids[1], true))
		dataOf(t, s, Local, ids[0]) // now the oldest is the newest
		c.pass(2 * time.Minute)
		reader := value(s.Open(Local, ids[2]))
		defer func() { _ = reader.Close() }()
		c.pass(2 * time.Minute)
		big := keep(t, s, Provenance{Tool: "search"}, corpus.Random(500<<10))
		if big.Dropped != 0 {
			t.Errorf("dropped %d: %s", big.Dropped, big.Cause)
		}
		expectTombstone(t, s, ids[3], backend.WhyQuota)
		expectTombstone(t, s, ids[4], backend.WhyQuota)
		expectWhole(t, s, ids[1]) // pinned
		expectWhole(t, s, ids[2]) // being read
		expectWhole(t, s, big.ID)
		expectWhole(t, s, ids[0]) // used last
		if u, err := s.Usage(); err != nil || u.Bytes > 1<<20 || u.Observations != 4 {
			t.Errorf("usage %+v, %v", u, err)
		}
		consistent(t, s)
	})
}

// What was used within a minute is not taken: then the new one is kept in part, and says so.
func TestFreshOnesStay(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now, Quota: 512 << 10})
		first := keep(t, s, Provenance{}, corpus.Random(300<<10))
		text := corpus.Random(300 << 10)
		second := keep(t, s, Provenance{}, text)
		expectWhole(t, s, first.ID)
		if second.Dropped == 0 || second.Bytes < 100<<10 || second.Bytes+second.Dropped != int64(len(text)) ||
			!strings.Contains(second.Cause, "--quota") {
			t.Errorf("kept %d, dropped %d: %q", second.Bytes, second.Dropped, second.Cause)
		}
		if got := dataOf(t, s, Local, second.ID); !bytes.Equal(got, text[:second.Bytes]) {
			t.Error("what is kept is not the beginning")
		}
		r := record(t, s, Provenance{}, text)
		if !errors.Is(r.Err(), ErrNoRoom) {
			t.Errorf("a third one: %v", r.Err())
		}
		if _, err := r.Commit(Stats{}); !errors.Is(err, ErrNoRoom) {
			t.Errorf("a third one is committed: %v", err)
		}
		if back := make([]byte, r.Size()); r.Size() > 0 {
			if _, err := r.ReadAt(back, 0); err != nil || !bytes.Equal(back, text[:len(back)]) {
				t.Errorf("after a failed commit: %v", err)
			}
		}
		if err := r.Discard(); err != nil {
			t.Error(err)
		}
		consistent(t, s)
		c.pass(2 * time.Minute)
		if third := keep(t, s, Provenance{}, text); third.Dropped != 0 {
			t.Errorf("after a minute: dropped %d: %s", third.Dropped, third.Cause)
		}
		expectTombstone(t, s, first.ID, backend.WhyQuota)
	})
}

// TestPruneOfManySmall checks that the quota of a prune counts what a list shows: sidecars and tombstones of small
// observations take more room than their data.
func TestPruneOfManySmall(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		dir := filepath.Join(t.TempDir(), "store")
		s := open(t, Options{Dir: dir, Now: c.now})
		for range 100 {
			keep(t, s, Provenance{}, corpus.Random(1<<10))
		}
		c.pass(time.Hour)
		small := open(t, Options{Dir: dir, Now: c.now, Quota: 90 << 10})
		want := Pruned{Removed: 10, Bytes: 10 << 10, Kept: 90, KeptBytes: 90 << 10}
		for _, dry := range []bool{true, false} {
			if got, err := small.Prune(dry); err != nil || got != want {
				t.Errorf("Prune(%v): %+v, %v; want %+v", dry, got, err, want)
			}
		}
	})
}

func TestPrune(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		dir := filepath.Join(t.TempDir(), "store")
		s := open(t, Options{Dir: dir, Now: c.now})
		text := corpus.Random(100 << 10)
		aged := keep(t, s, Provenance{}, text)
		c.pass(8 * oneDay)
		var ids []ID
		for range 4 {
			ids = append(ids, keep(t, s, Provenance{}, text).ID)
			c.pass(2 * time.Minute)
		}
		pinned := ids[0]
		must(t, s.Pin(Local, pinned, true))
		// The same store under a smaller quota, as after a changed setting.
		small := open(t, Options{Dir: dir, Now: c.now, Quota: 250 << 10, MaxAge: 7 * oneDay})
		l := value(s.List(Local, false))
		want := Pruned{Removed: 2, Bytes: 2 * int64(len(text)), Kept: 2, KeptBytes: 2 * int64(len(text))}
		if len(l) == 5 { // no look at ages came by since
			want.Removed, want.Bytes = 3, 3*int64(len(text))
		}
		for _, dry := range []bool{true, true, false} {
			got := value(small.Prune(dry))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("Prune(%v) (-want +got):\n%s", dry, d)
			}
		}
		expectTombstone(t, s, aged.ID, backend.WhyAge)
		expectTombstone(t, s, ids[1], backend.WhyQuota)
		expectTombstone(t, s, ids[2], backend.WhyQuota)
		expectWhole(t, s, pinned)
		expectWhole(t, s, ids[3])
		if got, err := small.Prune(false); err != nil || got.Removed != 0 {
			t.Errorf("again: %+v, %v", got, err)
		}
		consistent(t, s)
		r, err := s.Open(Local, ids[3])
		must(t, err)
		defer func() { _ = r.Close() }()
		c.pass(2 * time.Minute)
		young := keep(t, s, Provenance{}, text)
		want = Pruned{Kept: 3, KeptBytes: 3 * int64(len(text)), Fresh: 1, Pinned: 1, Busy: 1}
		if !onDisk(s) { // no machine knows what others have open: it expires, and its bytes stay for those
			elsewhere := value(small.Peek(Local, ids[3]))
			defer func() { _ = elsewhere.Close() }()
			want = Pruned{Removed: 1, Bytes: int64(len(text)), Kept: 2, KeptBytes: 2 * int64(len(text))}
			if got, err := small.Prune(false); err != nil || got != want {
				t.Errorf("Prune of one that is open: %+v, %v; want %+v", got, err, want)
			}
			expectTombstone(t, s, ids[3], backend.WhyQuota)
			for _, r := range []*Reader{r, elsewhere} {
				if got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size())); err != nil || !bytes.Equal(got, text) {
					t.Errorf("read after it expired: %d bytes, %v", len(got), err)
				}
			}
			return
		}
		for _, o := range []Options{{Dir: dir, Now: c.now, Quota: 50 << 10}, {Dir: dir, Now: c.now, MaxAge: time.Second}} {
			if o.Quota == 0 { // what is pinned has no age
				c.pass(30 * time.Second)
				want.Pinned = 0
			}
			for _, dry := range []bool{true, false} {
				if got, err := open(t, o).Prune(dry); err != nil || got != want {
					t.Errorf("Prune(%v) with quota %d and age %v: %+v, %v; want %+v", dry, o.Quota, o.MaxAge, got, err, want)
				}
			}
		}
		expectWhole(t, s, young.ID)
	})
}

// That waiting would make room is told where it would, and nowhere else.
func TestNoRoomYet(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		for name, k := range map[string]struct {
			size int
			age  time.Duration
			pin  bool
			want string // in the error; "": there is room
		}{
			"fresh":  {100 << 10, 0, false, "used up (--quota); observations used within the last minute are not evicted"},
			"pinned": {100 << 10, 0, true, "used up (--quota)"},
			"old":    {100 << 10, time.Minute, false, ""},
		} {
			t.Run(name, func(t *testing.T) {
				c := newClock()
				s := open(t, Options{Now: c.now, Quota: 250 << 10})
				o := keep(t, s, Provenance{}, corpus.Random(150<<10))
				must(t, s.Pin(Local, o.ID, k.pin))
				c.pass(k.age)
				r := record(t, s, Provenance{}, corpus.Random(k.size))
				_, err := r.Commit(Stats{})
				if err == nil {
					err = r.Err()
				}
				if (err == nil) != (k.want == "") || err != nil && !strings.HasSuffix(err.Error(), k.want) {
					t.Errorf("%v, want %q", err, k.want)
				}
			})
		}
	})
}
