package files_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// minFree is the number of bytes that stay free.
const minFree = 100 << 20

func TestDiskFloor(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now})
	s.f.SetMinFree(minFree)
	free := int64(101 << 20)
	taken := func() int64 {
		u := value(s.Usage())
		for _, n := range names(t, s, storefs.TmpDir) {
			if info, err := os.Stat(dir(s, "tmp/"+n)); err == nil {
				u.Bytes += info.Size()
			}
		}
		return u.Bytes
	}
	measuring := false
	s.Disk().Free = func() (int64, error) {
		if measuring {
			return 0, nil
		}
		measuring = true
		defer func() { measuring = false }()
		return free - taken(), nil
	}
	old := keep(t, s, Provenance{}, corpus.Random(600<<10))
	c.pass(2 * time.Minute)
	// 400 KiB are left above the floor: the old one makes room.
	o := keep(t, s, Provenance{}, corpus.Random(700<<10))
	if o.Dropped != 0 {
		t.Errorf("dropped %d: %s", o.Dropped, o.Cause)
	}
	expectTombstone(t, s, old.ID, whyQuota)
	c.pass(2 * time.Minute)
	// An endless stream ends at the floor.
	r := record(t, s, Provenance{}, corpus.Random(5<<20))
	if !errors.Is(r.Err(), ErrNoRoom) || !strings.Contains(r.Err().Error(), "--min-free") || r.Dropped() == 0 {
		t.Errorf("stream: dropped %d, %v", r.Dropped(), r.Err())
	}
	if left := free - taken(); left < minFree {
		t.Errorf("%d below the floor", minFree-left)
	}
	_ = r.Discard()
	// Others filled the disk: giving all we have would not help, so we keep it.
	last := keep(t, s, Provenance{}, corpus.Random(100<<10))
	c.pass(2 * time.Minute)
	free -= 50 << 20
	if _, err := record(t, s, Provenance{}, []byte("x")).Commit(Stats{}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("below the floor: %v", err)
	}
	expectWhole(t, s, last.ID)
}

// A writer that writes while another one looks at the disk takes no room that the other one is given.
func TestDiskFloorBesideAWriter(t *testing.T) {
	s := open(t, Options{})
	s.f.SetMinFree(minFree)
	data := func() int64 { return bytesIn(dir(s, storefs.TmpDir)) + bytesIn(dir(s, storefs.ObservationsDir)) }
	busy := record(t, s, Provenance{}, corpus.Random(2*blockSize))
	const room = 16<<20 + 1<<20 // busy holds 16 MiB of it
	looking := false
	s.Disk().Free = func() (int64, error) {
		free := minFree + room - data()
		if !looking { // busy goes on as soon as this look is over
			looking = true
			_, _ = busy.Write(corpus.Random(8 * blockSize))
			looking = false
		}
		return free, nil
	}
	other := record(t, s, Provenance{}, corpus.Random(2*room))
	_, _ = busy.Write(corpus.Random(2 * room))
	if busy.Dropped() == 0 || other.Dropped() == 0 {
		t.Errorf("dropped %d and %d: the disk was not tried", busy.Dropped(), other.Dropped())
	}
	if over := data() - room; over > 0 {
		t.Errorf("%d bytes below the floor", over)
	}
	_, _ = busy.Discard(), other.Discard()
}
