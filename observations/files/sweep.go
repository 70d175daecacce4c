package files

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

const (
	tidyEvery     = time.Hour // between two checks for old observations, by all processes together
	maxTombstones = 10_000
	tombstoneAge  = 90 * 24 * time.Hour

	lockPatience = 5 * time.Millisecond // longest wait for the lock if the work can be done later
)

// sweepAtOpen takes the lock and removes what dead processes left. It takes two short reads if there is nothing to do,
// and fails only if the store cannot be used at all.
func (q *quota) sweepAtOpen() error {
	err := q.lockedWithin(lockPatience, func(l *ledger) error {
		q.scheduleTidy(l)
		return l.sweep()
	})
	if errors.Is(err, backend.ErrNoRoom) {
		return nil // busy: another process is sweeping
	}
	return err
}

// sweep removes the leftovers of dead processes. Their names in tmp/ and in the ledger give the observations to check:
// one without a sidecar was never committed, one with a tombstone must lose its bytes, any other was acknowledged and
// stays.
func (l *ledger) sweep() error {
	census := l.files.newCensus()
	defer func() {
		if l.census != census {
			census.unlockDead()
		}
	}()
	var left []string
	err := l.files.disk.VisitNames(storefs.TmpDir, func(name string, _ bool) {
		stem, ext, _ := strings.Cut(name, ".")
		proc, isLive := stem, "."+ext == liveExt && isProcess(stem)
		if !isLive {
			var ours bool
			if proc, _, ours = parseKey(stem); !ours || !slices.Contains(tmpExts, "."+ext) {
				return
			}
		}
		if !census.isAlive(proc) && !isLive {
			left = append(left, name)
		}
	})
	if err != nil {
		return err
	}
	worked := map[backend.ID]bool{}
	for k := range l.Held {
		proc, id, ok := parseKey(k)
		if ok && census.isAlive(proc) {
			continue
		}
		l.release(k)
		worked[id] = true
	}
	for _, name := range left {
		stem, _, _ := strings.Cut(name, ".")
		_, id, _ := parseKey(stem)
		worked[id] = true
	}
	if len(worked) > 0 {
		all, err := l.files.scan(true)
		if err != nil {
			return err
		}
		for id := range worked {
			if e := all[id]; e != nil {
				if err := l.files.finishRemoval(e); err != nil {
					return err
				}
			}
		}
		l.recount(all)
	}
	for _, name := range left {
		l.marks = append(l.marks, storefs.TmpDir+"/"+name)
	}
	l.census = census
	return nil
}

var tmpExts = []string{dataExt, indexExt, sideExt, goneExt}

// tidyIfDue removes old observations, once an hour among all processes. It ignores an error, because the call that
// triggered it must not fail, and tries again a minute later.
func (q *quota) tidyIfDue() {
	if q.files.now().UnixNano() < q.nextTidy.Load() {
		return
	}
	q.nextTidy.Store(q.files.now().Add(time.Minute).UnixNano())
	_ = q.lockedWithin(lockPatience, func(l *ledger) error {
		now := q.files.now()
		if since := now.Sub(l.Swept); since >= 0 && since < tidyEvery { // another process did it
			q.scheduleTidy(l)
			return nil
		}
		all, err := l.sweepAndCount()
		if err != nil {
			return err
		}
		if !l.expireWhile(all, func() bool { return false }) {
			q.nextTidy.Store(now.Add(time.Second).UnixNano())
			return nil
		}
		l.trimTombstones(all)
		l.removeStrays(all)
		l.dropCaches(true)
		q.removeGoneCaches()
		l.Swept = now.UTC().Round(0)
		q.scheduleTidy(l)
		return nil
	})
}

func (q *quota) scheduleTidy(l *ledger) {
	q.nextTidy.Store(l.Swept.Add(tidyEvery).UnixNano())
	if now := q.files.now(); l.Swept.After(now) { // the clock was set back
		q.nextTidy.Store(now.UnixNano())
	}
}

// trimTombstones removes the oldest tombstones beyond 10,000 of them, beyond a sixteenth of the quota or of that of
// their owner, and those older than 90 days.
func (l *ledger) trimTombstones(all map[backend.ID]*entry) {
	var stones []*entry
	holders := l.writers()
	for id, e := range all {
		if e.side && e.data == "" && e.err == nil && !holders[id] {
			stones = append(stones, e)
		}
	}
	slices.SortFunc(stones, func(a, b *entry) int { return b.used.Compare(a.used) })
	var size int64
	own := map[string]int64{}
	for i, e := range stones {
		size += e.sideSize
		own[e.owner] += e.sideSize
		if i < maxTombstones && size <= l.quota.limit/16 && own[e.owner] <= l.quota.owners.limit/16 &&
			l.files.now().Sub(e.used) <= tombstoneAge {
			continue
		}
		// A sidecar of another version is never removed.
		if _, err := l.files.readSidecar(e.id); errors.Is(err, backend.ErrForeign) {
			continue
		}
		_ = l.remove(e)
	}
}

// removeStrays removes data files without a sidecar once they are older than the maximum age. They come from a store
// that was copied or lost its state; a sweep removes those of dead processes at once.
func (l *ledger) removeStrays(all map[backend.ID]*entry) {
	holders := l.writers()
	for id, e := range all {
		if e.side || e.err != nil || holders[id] || l.files.now().Sub(e.used) <= l.quota.maxAge {
			continue
		}
		_ = l.remove(e)
	}
}
