package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

const (
	version   = 1 // of the ledger
	quotaName = storefs.StateDir + "/quota.json"
	maxQuota  = 16 << 20 // size of the file: 150,000 writers or owners

	// allowance is the part of a reservation that is left for the sidecar.
	allowance = backend.MaxSidecar

	lockWait     = time.Second            // a longer wait for the lock is ErrNoRoom
	cleanupSlice = 200 * time.Millisecond // limit of a clean-up, because others may wait for the lock
)

// quota limits how much a store holds and for how long. Several processes share it by the [ledger].
type quota struct {
	files   *files
	limit   int64 // bytes
	minFree int64 // bytes
	maxAge  time.Duration
	ahead   int64 // see [backend.Options.Ahead]
	cache   bool
	copies  sync.Map // in a cache: the mark of each file whose bytes were compared
	owners  owners   // and the quota of each

	pending struct { // settlements that could not be written to the quota file yet
		sync.Mutex
		list []settlement
	}
	nextTidy atomic.Int64 // unix nanoseconds of the next check for old observations
}

// ledger is the content of the quota file: the bytes stored, and the bytes each writer reserved beyond that. If the
// file is missing or torn, it is rebuilt from the files of the store.
type ledger struct {
	V     int              `json:"v"`
	Kept  int64            `json:"kept"`
	Held  map[string]int64 `json:"held,omitempty"` // by key: process and ID
	Swept time.Time        `json:"swept"`          // last check for old observations

	Caches map[string]int64 `json:"caches,omitempty"` // bytes of each cache, as last measured

	// Kept by owner; "" has what names none. nil: not counted, because no quota of an owner is set.
	Owners map[string]int64  `json:"owners,omitzero"`
	HeldBy map[string]string `json:"held_by,omitempty"` // the owner of a key in Held; may be missing

	quota *quota // whose file is locked as long as the ledger is used
	files *files

	// The next two are released once the ledger is written. If that fails, they make a later sweep check their
	// observations again.
	marks  []string // files in tmp/ to remove
	census *census  // its dead processes' live files are to be removed
}

// reserved returns the bytes of all reservations, cached those of all caches as they were last measured.
func (l *ledger) reserved() int64 { return sumOf(l.Held) }

func (l *ledger) cached() int64 { return sumOf(l.Caches) }

func sumOf(sizes map[string]int64) (n int64) {
	for _, size := range sizes {
		n += size
	}
	return n
}

// writers returns the IDs of the observations being written.
func (l *ledger) writers() map[backend.ID]bool {
	ids := map[backend.ID]bool{}
	for k := range l.Held {
		if _, id, ok := parseKey(k); ok {
			ids[id] = true
		}
	}
	return ids
}

// settlement ends the reservation of a key. size is the final size of its observation, 0 if it was discarded.
type settlement struct {
	key, owner string
	size       int64
}

// locked runs do with the ledger under the file lock and writes it back, even if do fails, because do may have changed
// files by then. Waiting for more than a second is ErrNoRoom.
func (q *quota) locked(do func(*ledger) error) error { return q.lockedWithin(lockWait, do) }

// lockedWithin is locked with patience instead of a second.
func (q *quota) lockedWithin(patience time.Duration, do func(*ledger) error) error {
	f, err := q.lockLedger(patience)
	if err != nil {
		return err
	}
	defer f.UnlockAndClose()
	old, err := f.ReadAll(maxQuota, 4<<10)
	if err != nil {
		return err
	}
	l, err := q.load(old)
	if err != nil {
		return err
	}
	applied := q.applyPending(l)
	err = do(l)
	b, failed := json.Marshal(l)
	if failed == nil && !bytes.Equal(b, old) {
		failed = f.Overwrite(b)
	}
	if l.finishMarks(failed == nil); failed != nil {
		q.deferSettlement(applied...)
		return failed
	}
	return err
}

// finishMarks removes the marks and the dead processes' files if the ledger was written, else leaves them to a later
// sweep.
func (l *ledger) finishMarks(written bool) {
	if written {
		for _, mark := range l.marks {
			_ = l.files.disk.Remove(mark)
		}
	}
	switch {
	case l.census == nil:
	case written:
		l.census.removeDead()
	default:
		l.census.unlockDead()
	}
}

// lockLedger polls for the file lock until its pauses add up to patience; time in which this process was suspended does
// not count.
func (q *quota) lockLedger(patience time.Duration) (*storefs.File, error) {
	waited := time.Duration(0)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		f, err := q.files.disk.Open(quotaName, true)
		if err != nil {
			return nil, err
		}
		ok, err := f.LockLinked(true)
		if ok { // else the file was deleted by hand meanwhile
			return f, nil
		}
		f.UnlockAndClose()
		if err != nil {
			return nil, noLocks(err)
		}
		if waited >= patience {
			return nil, fmt.Errorf(
				"%w: another process had its quota file locked for over a second; try again", backend.ErrNoRoom)
		}
		time.Sleep(pause)
		waited += pause
	}
}

func (q *quota) load(b []byte) (*ledger, error) {
	l := &ledger{quota: q, files: q.files}
	if json.Unmarshal(b, l) == nil && l.V == version && l.Kept >= 0 {
		if l.Held == nil {
			l.Held = map[string]int64{}
		}
		return l, nil
	}
	return q.rebuild()
}

// rebuild counts a new ledger from the files if the old one is missing, torn or invalid. For a reservation it counts
// the bytes written so far; its holder reports the rest at its next reservation.
func (q *quota) rebuild() (*ledger, error) {
	l := &ledger{V: version, quota: q, files: q.files, Held: map[string]int64{}}
	census := q.files.newCensus()
	defer census.unlockDead()
	err := q.files.disk.VisitNames(storefs.TmpDir, func(name string, _ bool) {
		k, ok := strings.CutSuffix(name, dataExt)
		if proc, _, named := parseKey(k); !ok || !named || !census.isAlive(proc) {
			return
		}
		if info, err := q.files.disk.Stat(storefs.TmpDir + "/" + name); err == nil {
			l.Held[k] = info.Size() + allowance
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.count(); err != nil {
		return nil, err
	}
	return l, nil
}

// applyPending enters the settlements that could not be written before.
func (q *quota) applyPending(l *ledger) []settlement {
	q.pending.Lock()
	list := q.pending.list
	q.pending.list = nil
	q.pending.Unlock()
	for _, o := range list {
		l.endReservation(o)
	}
	return list
}

func (q *quota) deferSettlement(list ...settlement) {
	q.pending.Lock()
	q.pending.list = append(q.pending.list, list...)
	q.pending.Unlock()
}

// endReservation replaces a reservation by the final size. If it is missing, the ledger was rebuilt meanwhile and
// counts the files already.
func (l *ledger) endReservation(o settlement) {
	if _, ok := l.Held[o.key]; ok {
		l.release(o.key)
		l.add(o.owner, o.size)
	}
}

func (q *quota) endReservation(key, owner string, size int64) {
	o := settlement{key, owner, size}
	if q.locked(func(l *ledger) error { l.endReservation(o); return nil }) != nil {
		q.deferSettlement(o)
	}
}

// reserve adds at least need bytes, and up to want if there is room, to the reservation of have bytes of an owner under
// a key. If it gets less than need, err says why.
func (q *quota) reserve(owner, key string, have, need, want int64) (got int64, err error) {
	want = max(need, want)
	if q.owners.counted() {
		q.owners.learn.Do(q.learnOwners)
	}
	failed := q.locked(func(l *ledger) error {
		if l.Owners == nil && q.owners.counted() {
			if _, err := l.count(); err != nil {
				return err
			}
		}
		if have > 0 {
			l.hold(key, owner, have-l.Held[key])
		}
		left, why, err := l.roomLeft(owner, need)
		if err != nil {
			return err
		}
		if left < need && !l.isFull(owner, why) {
			young, err := l.makeRoom(owner, need, want)
			if err != nil {
				return err
			}
			if left, why, err = l.roomLeft(owner, need); err != nil {
				return err
			}
			if left < need && errors.Is(why, backend.ErrOwnerQuota) {
				q.owners.full.Store(owner, q.files.now().Add(fullFor))
			} else if left < need && left+young >= need {
				why = fmt.Errorf("%w; observations used within the last minute are not evicted", why)
			}
		}
		got = max(0, min(want, left))
		if got > 0 {
			l.hold(key, owner, got)
		}
		if got < need {
			return why
		}
		return nil
	})
	if failed != nil && !errors.Is(failed, backend.ErrNoRoom) {
		got = 0 // the ledger does not contain it
	}
	return got, failed
}

// roomLeft returns how many bytes may be reserved for an owner, and the error to report if they don't suffice.
func (l *ledger) roomLeft(owner string, need int64) (int64, error, error) {
	left, why, err := l.storeLeft(need)
	if own := l.ownerLeft(owner); err == nil && own < left {
		return own, backend.ErrOwnerQuota, nil
	}
	return left, why, err
}

// storeLeft is roomLeft of the whole store, whoever the owner is.
func (l *ledger) storeLeft(need int64) (int64, error, error) {
	quota := l.quota.limit - l.Kept - l.reserved() - l.cached()
	why := fmt.Errorf("%w: its quota of %s is used up (--quota)", backend.ErrNoRoom, backend.FormatBytes(l.quota.limit))
	if l.quota.minFree == 0 {
		return quota, why, nil
	}
	disk, err := l.diskLeft(need)
	if err != nil {
		return 0, nil, err
	}
	if disk < quota {
		why = fmt.Errorf("%w: the disk is full except for the %s that must stay free (--min-free)",
			backend.ErrNoRoom, backend.FormatBytes(l.quota.minFree))
	}
	return min(quota, disk), why, nil
}

// diskLeft returns the free bytes above the minimum, less what others reserved and have not written yet.
func (l *ledger) diskLeft(need int64) (int64, error) {
	free, err := l.files.disk.FreeBytes()
	if err != nil {
		return 0, err
	}
	if left := free - l.quota.minFree - l.reserved(); left >= need { // the common case needs no stat
		return left, nil
	}
	var unwritten int64
	for k, held := range l.Held {
		if info, err := l.files.disk.Stat(storefs.TmpDir + "/" + k + dataExt); err == nil {
			held -= info.Size()
		}
		unwritten += max(0, held)
	}
	// Again, after the files: the writers go on meanwhile, and what they wrote between an earlier look at the disk and
	// one at their files would count as free and as written.
	if free, err = l.files.disk.FreeBytes(); err != nil {
		return 0, err
	}
	return free - l.quota.minFree - unwritten, nil
}

// count scans the store and counts its bytes.
func (l *ledger) count() (map[backend.ID]*entry, error) {
	all, err := l.files.scan(true)
	if err == nil {
		l.recount(all)
	}
	return all, err
}

// sweepAndCount is count after a sweep.
func (l *ledger) sweepAndCount() (map[backend.ID]*entry, error) {
	if err := l.sweep(); err != nil {
		return nil, err
	}
	return l.count()
}

// recount sets the stored bytes from a scan. It skips files of an observation that is being written: its reservation
// covers them, even once they are in place.
func (l *ledger) recount(all map[backend.ID]*entry) {
	holders := l.writers()
	var kept, least int64
	for id, e := range all {
		if e.err != nil { // the count may be too high, never too low
			least = l.Kept
		}
		if !holders[id] {
			kept += e.size()
		}
	}
	l.Kept = max(kept, least)
	l.countOwners(all, holders)
}
