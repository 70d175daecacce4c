package observations

import (
	"errors"
	"slices"
	"strings"
	"time"

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
func (s *Store) sweepAtOpen() error {
	err := s.lockedWithin(lockPatience, func(l *ledger) error {
		s.scheduleTidy(l)
		return s.sweep(l)
	})
	if errors.Is(err, ErrNoRoom) {
		return nil // busy: another process is sweeping
	}
	return err
}

// sweep removes the leftovers of dead processes. Their names in tmp/ and in the ledger give the observations to check:
// one without a sidecar was never committed, one with a tombstone must lose its bytes, any other was acknowledged and
// stays.
func (s *Store) sweep(l *ledger) error {
	census := s.newCensus()
	defer func() {
		if l.census != census {
			census.unlockDead()
		}
	}()
	var left []string
	err := s.disk.VisitNames(storefs.TmpDir, func(name string, _ bool) {
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
	worked := map[ID]bool{}
	for k := range l.Held {
		proc, id, ok := parseKey(k)
		if ok && census.isAlive(proc) {
			continue
		}
		delete(l.Held, k)
		worked[id] = true
	}
	for _, name := range left {
		stem, _, _ := strings.Cut(name, ".")
		_, id, _ := parseKey(stem)
		worked[id] = true
	}
	if len(worked) > 0 {
		all, err := s.scan(true)
		if err != nil {
			return err
		}
		for id := range worked {
			if e := all[id]; e != nil {
				if err := s.finishRemoval(e); err != nil {
					return err
				}
			}
		}
		s.recount(l, all)
	}
	for _, name := range left {
		l.marks = append(l.marks, storefs.TmpDir+"/"+name)
	}
	l.census = census
	return nil
}

var tmpExts = []string{dataExt, indexExt, sideExt, goneExt}

// finishRemoval completes the removal that a dead process had begun.
func (s *Store) finishRemoval(e *entry) error {
	if e.err != nil {
		return e.err
	}
	if e.side {
		if o, err := s.readSidecar(e.id); err != nil || o.Expired == nil {
			return nil //nolint:nilerr // in doubt, keep the files
		}
	}
	return s.removeBytes(e)
}

// removeBytes removes all files of an observation but its sidecar.
func (s *Store) removeBytes(e *entry) error {
	if e.data != "" {
		if err := s.disk.Remove(storefs.ObservationsDir + "/" + e.data); err != nil {
			return err
		}
		e.data, e.dataSize = "", 0
	}
	if e.index {
		if err := s.disk.Remove(e.name(indexExt)); err != nil {
			return err
		}
		e.index, e.indexSize = false, 0
	}
	if e.pin {
		if err := s.disk.Remove(e.name(pinExt)); err != nil {
			return err
		}
		e.pin = false
	}
	return nil
}

// tidyIfDue removes old observations, once an hour among all processes. It ignores an error, because the call that
// triggered it must not fail, and tries again a minute later.
func (s *Store) tidyIfDue() {
	if s.now().UnixNano() < s.nextTidy.Load() {
		return
	}
	s.nextTidy.Store(s.now().Add(time.Minute).UnixNano())
	_ = s.lockedWithin(lockPatience, func(l *ledger) error {
		now := s.now()
		if since := now.Sub(l.Swept); since >= 0 && since < tidyEvery { // another process did it
			s.scheduleTidy(l)
			return nil
		}
		all, err := s.sweepAndCount(l)
		if err != nil {
			return err
		}
		if !s.expireWhile(l, all, func() bool { return false }) {
			s.nextTidy.Store(now.Add(time.Second).UnixNano())
			return nil
		}
		s.trimTombstones(l, all)
		s.removeStrays(l, all)
		s.dropCaches(l, true)
		s.removeGoneCaches()
		l.Swept = now.UTC().Round(0)
		s.scheduleTidy(l)
		return nil
	})
}

func (s *Store) scheduleTidy(l *ledger) {
	s.nextTidy.Store(l.Swept.Add(tidyEvery).UnixNano())
	if now := s.now(); l.Swept.After(now) { // the clock was set back
		s.nextTidy.Store(now.UnixNano())
	}
}

// trimTombstones removes the oldest tombstones beyond 10,000 of them, beyond a sixteenth of the quota, and those older
// than 90 days.
func (s *Store) trimTombstones(l *ledger, all map[ID]*entry) {
	var stones []*entry
	holders := l.writers()
	for id, e := range all {
		if e.side && e.data == "" && e.err == nil && !holders[id] {
			stones = append(stones, e)
		}
	}
	slices.SortFunc(stones, func(a, b *entry) int { return b.used.Compare(a.used) })
	var size int64
	for i, e := range stones {
		size += e.sideSize
		if i < maxTombstones && size <= s.quota/16 && s.now().Sub(e.used) <= tombstoneAge {
			continue
		}
		// A sidecar of another version is never removed.
		if _, err := s.readSidecar(e.id); errors.Is(err, errForeign) {
			continue
		}
		s.markRecount(l, e.id)
		if s.disk.Remove(e.name(sideExt)) == nil {
			l.Kept -= e.sideSize
		}
	}
}

// removeStrays removes data files without a sidecar once they are older than the maximum age. They come from a store
// that was copied or lost its state; a sweep removes those of dead processes at once.
func (s *Store) removeStrays(l *ledger, all map[ID]*entry) {
	holders := l.writers()
	for id, e := range all {
		if e.side || e.err != nil || holders[id] || s.now().Sub(e.used) <= s.maxAge {
			continue
		}
		size := e.size()
		s.markRecount(l, id)
		if s.removeBytes(e) == nil {
			l.Kept -= size
		}
	}
}
