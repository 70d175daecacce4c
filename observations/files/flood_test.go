package files_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// playFlood writes n observations, or, without n, one after the other until there is no room and beyond, under a quota
// or a disk of that size with a minimum free. Its clock runs a minute in 20 ms. alone uses a private quota file,
// without the reservations of others; blind ignores the free space.
func playFlood(dir string, quota, floor int64, n int, epoch int64, how string) error {
	o := Options{Dir: dir, MinFree: -1, Quota: quota, MaxAge: -1} // nothing goes by its age, however long this takes
	began := time.UnixMilli(epoch)
	o.Now = func() time.Time { return began.Add(time.Since(began) * 3000) }
	disk := &storefs.FS{}
	if floor > 0 {
		o.MinFree, o.Quota = floor, -1
		disk.Free = func() (int64, error) {
			// The other order would miss a file that is moved between the two looks, as no disk does.
			taken := bytesIn(filepath.Join(dir, storefs.TmpDir))
			taken += bytesIn(filepath.Join(dir, storefs.ObservationsDir))
			return quota + floor - taken, nil
		}
		if how == "blind" {
			disk.Free = func() (int64, error) { return 1 << 40, nil }
		}
	}
	s, err := openStore(o, disk)
	if err != nil {
		return err
	}
	if how == "alone" {
		own := filepath.Join(dir, "state-"+s.f.ProcessName())
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		if disk.Dirs[storefs.StateDir], err = os.OpenRoot(own); err != nil {
			return err
		}
	}
	for i := 0; n == 0 || i < n; i++ {
		text := noise(1 + rand.IntN(2)*rand.IntN(3*blockSize/2) + rand.IntN(1000))
		if n == 0 {
			text = noise(blockSize + 1)
		}
		r, err := s.Record(Provenance{Tool: "keep"})
		if err != nil {
			return err
		}
		for rest := text; len(rest) > 0; {
			k := min(len(rest), 1+rand.IntN(50_000))
			_, _ = r.Write(rest[:k])
			rest = rest[k:]
		}
		if n == 0 { // an endless stream: what is over is dropped
			for r.Dropped() < quota/4 {
				_, _ = r.Write(text)
			}
			text = nil
		}
		size := r.Size()
		kept, err := r.Commit(Stats{Receipt: "receipt"})
		switch {
		case err == nil && n == 0:
			fmt.Println(kept.ID, kept.SHA256)
		case err == nil:
			fmt.Println(kept.ID, sum(text[:size]))
		case errors.Is(err, ErrNoRoom):
			_ = r.Discard()
			fmt.Println("full")
		default:
			return err
		}
	}
	return s.Close()
}

// stands returns how many bytes a store takes for data, sidecars and indexes, committed or not, as the quota counts
// them.
func stands(store string) int64 {
	return bytesIn(filepath.Join(store, storefs.ObservationsDir)) + bytesIn(filepath.Join(store, storefs.TmpDir))
}

// flood is a store with four writers and an endless stream.
type flood struct {
	quota, most               int64
	samples, over             int
	whole, expired, full, die int
	wrong                     []string
}

func (f *flood) note(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// run starts the writers and checks the sum all along. A fifth writer is killed and restarted, so that its reservations
// are left behind.
func (f *flood) run(t *testing.T, floor int64, writes int, how string) {
	store := filepath.Join(scratch(t), "store")
	s := open(t, Options{Dir: store, MaxAge: -1, Quota: f.quota})
	begin := func(n int) *another {
		return start(
			t, "flood", store, fmt.Sprint(f.quota), fmt.Sprint(floor), fmt.Sprint(n), fmt.Sprint(time.Now().UnixMilli()), how,
		)
	}
	stop, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Take the lock, so that nothing is evicted and no room is given: else an evicted observation and its
			// successor would both count.
			l, err := s.f.LockLedger()
			if err != nil {
				continue
			}
			now := stands(store)
			_ = l.Close()
			f.samples++
			f.most = max(f.most, now)
			if now > f.quota {
				f.over++
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	var writers []*another
	for range 4 {
		writers = append(writers, begin(writes))
	}
	var lines []string
	streamed := make(chan []string)
	ended := make(chan struct{})
	go func() {
		var lines []string
		defer func() { streamed <- lines }()
		for {
			a := begin(0)
			for said := 0; ; said++ {
				l, ok := <-a.lines
				if !ok { // it died of itself
					if err := a.Wait(); err != nil {
						f.die++
						lines = append(lines, "died: "+a.said.String())
					}
					return
				}
				lines = append(lines, l)
				select {
				case <-ended:
				default:
					if said < 3 {
						continue
					}
				}
				break
			}
			_ = a.Process.Kill()
			rest, _ := a.rest()
			lines = append(lines, rest...)
			select {
			case <-ended:
				return
			default:
			}
		}
	}()
	for _, a := range writers {
		said, err := a.rest()
		if err != nil {
			f.note("%v: %s", err, &a.said)
		}
		lines = append(lines, said...)
	}
	close(ended)
	lines = append(lines, <-streamed...)
	close(stop)
	<-sampled
	if f.over > 0 {
		f.note("%d of %d samples are over %d bytes, the most is %d", f.over, f.samples, f.quota, f.most)
	}
	if f.die > 0 {
		f.note("the stream ended")
	}
	f.judge(t, s, lines)
}

// judge checks every acknowledged ID, and the reservations.
func (f *flood) judge(t *testing.T, s *Store, lines []string) {
	for _, l := range lines {
		id, hash, ok := strings.Cut(l, " ")
		if !ok {
			f.full++
			continue
		}
		o, err := s.Stat(Local, ID(id))
		switch {
		case err == nil && o.SHA256 == hash && s.Verify(Local, o.ID) == nil:
			f.whole++
		case err != nil && strings.Contains(err.Error(), "made room"):
			f.expired++
		case errors.Is(err, ErrNotFound): // tombstones have their share of the quota, and go as well
			f.expired++
		default:
			f.note("%s: %v", l, err)
		}
	}
	again, err := OpenStore(roomy(Options{Dir: s.Dir(), MaxAge: -1, Quota: f.quota})) // sweeps
	must(t, err)
	f.wrong = append(f.wrong, inconsistencies(again)...)
	must(t, again.Close())
}

// Four processes write, and a fifth streams without end and is killed again and again. The stored bytes never exceed
// the quota or the disk's minimum free space, every acknowledged observation is complete or was evicted, and no
// reservation outlives its holder. The quota counts bytes, not disk blocks.
func TestS14QuotaAndFloorHold(t *testing.T) {
	writes := promise.Size(300, 10_000)
	if testing.Short() {
		writes = 40
	}
	const quota = 3 << 20
	under, above := &flood{quota: quota}, &flood{quota: quota}
	under.run(t, 0, writes, "")
	above.run(t, 1<<20, writes/10, "") // each of these looks through the whole store
	for _, w := range append(under.wrong, above.wrong...) {
		t.Error(w)
	}
	if under.expired+above.expired+under.full+above.full == 0 || under.full+under.whole+under.expired < 4*writes {
		t.Errorf("the quota was not tried: %+v, %+v", under, above)
	}
	control := &flood{quota: quota}
	for try := 0; try < 5 && control.over == 0; try++ {
		control.run(t, 0, 40, "alone")
	}
	blind := &flood{quota: quota}
	blind.run(t, 1<<20, 40, "blind")
	if blind.over == 0 {
		t.Error("nothing came below the floor of a disk that nobody looks at")
	}
	promise.Kept(t, promise.Proof{Promise: "S14", Cases: under.samples + above.samples, Failures: len(under.wrong) + len(above.wrong), Control: min(control.over, blind.over),
		Figures: fmt.Sprintf("4 × %d writes and a stream; quota %d: at most %d, %d whole, %d made room, %d found none; above the floor of a disk, 4 × %d: at most %d of %d; control: reservations not shared, at most %d; no look at the disk, %d",
			writes, quota, under.most, under.whole, under.expired, under.full, writes/10, above.most, above.quota, control.most, blind.most)})
}

// bytesIn returns the bytes in a directory; files that vanish meanwhile count nothing.
func bytesIn(dir string) (n int64) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}
