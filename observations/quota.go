package observations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	quotaName = stateDir + "/quota.json"
	maxQuota  = 4 << 20 // of the file: 40,000 writers

	// reserveStep is what a writer reserves ahead, so that a stream costs one
	// look at the quota in 256 blocks; less in a small store, which few steps would fill.
	reserveStep = 16 << 20
	// allowance is kept back in a reservation for the sidecar that ends it.
	allowance = maxSidecar

	lockWait = time.Second            // not got by then means no room
	slice    = 200 * time.Millisecond // clean-up while others wait for the lock
)

// ledger is the quota file: how many bytes are kept, and how many each writer
// reserved beyond that. It is a cache of what stands on the disk: where it is
// absent or torn, it is counted again.
type ledger struct {
	V     int              `json:"v"`
	Kept  int64            `json:"kept"`
	Held  map[string]int64 `json:"held,omitempty"` // by key: process and ID
	Swept time.Time        `json:"swept"`          // the last look at ages

	// What names the observations to look at again, should it not be written: it goes when it is.
	marks []string // files in tmp/
	swept *census  // whose dead are buried then
}

func (l *ledger) held() int64 {
	var n int64
	for _, b := range l.Held {
		n += b
	}
	return n
}

// holders are the observations in the hands of a writer.
func (l *ledger) holders() map[ID]bool {
	ids := map[ID]bool{}
	for k := range l.Held {
		if _, id, ok := parseKey(k); ok {
			ids[id] = true
		}
	}
	return ids
}

// settlement ends a reservation: its observation has this size now, or is gone.
type settlement struct {
	key  string
	size int64
}

// locked runs do with the ledger under its lock, and writes it back, also
// where do fails: it may have done half. Waiting longer than a second is ErrNoRoom.
func (s *Store) locked(do func(*ledger) error) error { return s.lockedWithin(lockWait, do) }

// lockedWithin is locked for those who can do without it.
func (s *Store) lockedWithin(patience time.Duration, do func(*ledger) error) error {
	if err := s.enter(patience); err != nil {
		return err
	}
	defer func() { <-s.gate }()
	f, err := s.lockLedger(patience)
	if err != nil {
		return err
	}
	defer f.release()
	stands, err := f.all(maxQuota, 4<<10)
	if err != nil {
		return err
	}
	l, err := s.load(stands)
	if err != nil {
		return err
	}
	owed := s.pay(l)
	err = do(l)
	b, failed := json.Marshal(l)
	if failed == nil && !bytes.Equal(b, stands) {
		failed = f.replace(b)
	}
	if l.end(s, failed == nil); failed != nil {
		s.owe(owed...)
		return failed
	}
	return err
}

// end lets go of what was to be done again where the ledger is not written.
func (l *ledger) end(s *Store, written bool) {
	if written {
		for _, mark := range l.marks {
			_ = s.disk.remove(mark)
		}
	}
	switch {
	case l.swept == nil:
	case written:
		l.swept.bury()
	default:
		l.swept.close()
	}
}

var errBusy = fmt.Errorf("%w: another process had its quota file locked for over a second; try again", ErrNoRoom)

// enter waits for the other goroutines of this process; those would only poll
// for the file's lock.
func (s *Store) enter(patience time.Duration) error {
	select {
	case s.gate <- struct{}{}: // free: however late it is
		return nil
	default:
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-wait.C:
	}
	select {
	case s.gate <- struct{}{}: // where this process stood still it became free meanwhile
		return nil
	default:
		return errBusy
	}
}

// lockLedger waits as long as its pauses together are patience: time in which this process stood still does not count.
func (s *Store) lockLedger(patience time.Duration) (*file, error) {
	waited := time.Duration(0)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		f, err := s.disk.open(quotaName, true)
		if err != nil {
			return nil, err
		}
		ok, err := f.hold(true)
		if ok { // else it was deleted by hand meanwhile
			return f, nil
		}
		f.release()
		if err != nil {
			return nil, noLocks(err)
		}
		if waited >= patience {
			return nil, errBusy
		}
		time.Sleep(pause)
		waited += pause
	}
}

func (s *Store) load(b []byte) (*ledger, error) {
	l := &ledger{}
	if json.Unmarshal(b, l) == nil && l.V == version && l.Kept >= 0 {
		if l.Held == nil {
			l.Held = map[string]int64{}
		}
		return l, nil
	}
	return s.rebuild()
}

// rebuild makes a ledger from what stands on the disk, where the file is
// absent, torn or strange. Of a reservation it sees what was written of it;
// its holder tells the rest when it reserves again.
func (s *Store) rebuild() (*ledger, error) {
	l := &ledger{V: version, Held: map[string]int64{}}
	processes := s.newCensus()
	defer processes.close()
	err := s.disk.names(tmpDir, func(name string) {
		k, ok := strings.CutSuffix(name, dataExt)
		if proc, _, named := parseKey(k); !ok || !named || !processes.lives(proc) {
			return
		}
		if info, err := s.disk.stat(tmpDir + "/" + name); err == nil {
			l.Held[k] = info.Size() + allowance
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.count(l); err != nil {
		return nil, err
	}
	return l, nil
}

// pay enters what could not be entered before.
func (s *Store) pay(l *ledger) []settlement {
	s.owed.Lock()
	list := s.owed.list
	s.owed.list = nil
	s.owed.Unlock()
	for _, o := range list {
		l.settle(o)
	}
	return list
}

func (s *Store) owe(list ...settlement) {
	s.owed.Lock()
	s.owed.list = append(s.owed.list, list...)
	s.owed.Unlock()
}

// settle turns a reservation into what became of it. Where it is not there any
// more, the ledger was counted again meanwhile and knows already.
func (l *ledger) settle(o settlement) {
	if _, ok := l.Held[o.key]; ok {
		delete(l.Held, o.key)
		l.Kept += o.size
	}
}

func (s *Store) settle(key string, size int64) {
	o := settlement{key, size}
	if s.locked(func(l *ledger) error { l.settle(o); return nil }) != nil {
		s.owe(o)
	}
}

// step is what a writer reserves ahead.
func (s *Store) step() int64 { return min(reserveStep, max(s.quota/64, blockSize)) }

// reserve adds at least need bytes to the reservation of have bytes under a
// key, up to want where there is room. What it got may be less: then the error
// says why.
func (s *Store) reserve(key string, have, need, want int64) (got int64, err error) {
	want = max(need, want)
	failed := s.locked(func(l *ledger) error {
		if have > 0 {
			l.Held[key] = have
		}
		left, why, err := s.left(l, need)
		if err != nil {
			return err
		}
		if left < need {
			young, err := s.makeRoom(l, need, want)
			if err != nil {
				return err
			}
			if left, why, err = s.left(l, need); err != nil {
				return err
			}
			if left < need && left+young >= need {
				why = fmt.Errorf("%w; what was used within the last minute makes no room yet", why)
			}
		}
		got = max(0, min(want, left))
		if got > 0 {
			l.Held[key] += got
		}
		if got < need {
			return why
		}
		return nil
	})
	if failed != nil && !errors.Is(failed, ErrNoRoom) {
		got = 0 // the ledger does not know of it
	}
	return got, failed
}

// left is how many bytes may be reserved, and what would have to give way for more.
func (s *Store) left(l *ledger, need int64) (int64, error, error) {
	quota := s.quota - l.Kept - l.held()
	why := fmt.Errorf("%w: its quota of %s is used up (--quota)", ErrNoRoom, amount(s.quota))
	if s.minFree == 0 {
		return quota, why, nil
	}
	disk, err := s.diskLeft(l, need)
	if err != nil {
		return 0, nil, err
	}
	if disk < quota {
		why = fmt.Errorf("%w: the disk is full but for the %s that stay free (--min-free)", ErrNoRoom, amount(s.minFree))
	}
	return min(quota, disk), why, nil
}

// diskLeft is what is free above the floor, without what others reserved and
// have not written yet.
func (s *Store) diskLeft(l *ledger, need int64) (int64, error) {
	free, err := s.disk.room()
	if err != nil {
		return 0, err
	}
	free -= s.minFree
	if free-l.held() >= need { // as if nothing were written yet: the common case costs no look
		return free - l.held(), nil
	}
	for k, held := range l.Held {
		if info, err := s.disk.stat(tmpDir + "/" + k + dataExt); err == nil {
			held -= info.Size()
		}
		free -= max(0, held)
	}
	return free, nil
}

// count looks at all that stands in the store, and counts it.
func (s *Store) count(l *ledger) (map[ID]*entry, error) {
	all, err := s.survey(true)
	if err == nil {
		s.recount(l, all)
	}
	return all, err
}

// recount counts what stands on the disk. What a living writer holds is in its
// reservation, also where its files stand in place already.
func (s *Store) recount(l *ledger, all map[ID]*entry) {
	holders := l.holders()
	var kept, least int64
	for id, e := range all {
		if e.doubt != nil { // it may say too much, never too little
			least = l.Kept
		}
		if !holders[id] {
			kept += e.size()
		}
	}
	l.Kept = max(kept, least)
}

// amount words a number of bytes: "1 GiB", "1.5 MiB", "312 bytes".
func amount(n int64) string {
	units := []string{"GiB", "MiB", "KiB"}
	for i, unit := range units {
		if one := int64(1) << (30 - 10*i); n >= one {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(one), 'f', 1, 64), ".0") + " " + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}
