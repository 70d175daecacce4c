package observations

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// freshFor is the time after its last use in which an observation is never evicted or expired: a caller that received
// its ID needs time to use it.
const freshFor = time.Minute

// Pruned reports the result of [Store.Prune].
type Pruned struct {
	Removed   int
	Bytes     int64
	Kept      int
	KeptBytes int64

	// How many of those kept are too old or over the quota, by the reason why they stay.
	Fresh  int // used within the last minute
	Pinned int // counted only while the store is over its quota
	Busy   int // open in some process, or not removable
}

// Prune expires what is older than the maximum age, then the least recently used observations until the data of those
// kept, which [Store.List] shows, are within the quota. Writers make room for the rest, such as tombstones. Pinned
// ones, those used within the last minute and those open in any process stay. dry only counts.
func (s *Store) Prune(dry bool) (Pruned, error) {
	var p Pruned
	err := s.locked(func(l *ledger) error {
		count := s.sweepAndCount
		if dry {
			count = s.count
		}
		all, err := count(l)
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.isWhole() {
				p.Kept++
				p.KeptBytes += e.dataSize
			}
		}
		for _, e := range s.candidates(l, all) {
			if !s.isTooOld(e) && p.KeptBytes <= s.quota {
				break
			}
			bytes, ok := e.dataSize, false
			if dry {
				ok = s.expirable(e)
			} else {
				var freed int64
				if freed, ok = s.expire(l, e, s.expiryReason(e)); ok {
					l.Kept -= freed
				}
			}
			if !ok {
				p.Busy++
				continue
			}
			p.Removed++
			p.Bytes += bytes
			p.Kept--
			p.KeptBytes -= bytes
		}
		over := p.KeptBytes > s.quota
		for _, e := range all {
			switch {
			case !e.isWhole():
			case e.pin && over:
				p.Pinned++
			case !e.pin && s.isFresh(e) && (over || s.isTooOld(e)):
				p.Fresh++
			}
		}
		if !dry {
			s.trimTombstones(l, all)
			s.removeStrays(l, all)
			l.Swept = s.now().UTC().Round(0)
			s.scheduleTidy(l)
		}
		return nil
	})
	if err != nil {
		return Pruned{}, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

// isWhole reports whether data and sidecar exist.
func (e *entry) isWhole() bool { return e.side && e.data != "" }

// isFresh reports whether the observation was used within freshFor.
func (s *Store) isFresh(e *entry) bool {
	age := s.now().Sub(e.used)
	return age < freshFor && age > -freshFor
}

func (s *Store) isTooOld(e *entry) bool { return s.now().Sub(e.used) > s.maxAge }

func (s *Store) expiryReason(e *entry) string {
	if s.isTooOld(e) {
		return whyAge
	}
	return whyQuota
}

// candidates returns the observations that may be removed, least recently used first: whole, not pinned, not fresh, not
// being written. A last use in the future (the clock was set back) sorts last and is not fresh.
func (s *Store) candidates(l *ledger, all map[ID]*entry) []*entry {
	holders := l.writers()
	var list []*entry
	for id, e := range all {
		if e.isWhole() && e.err == nil && !e.pin && !holders[id] && !s.isFresh(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.used.Compare(b.used) })
	return list
}

// makeRoom counts all files, expires what is too old, then the least recently used until want bytes are free, or need
// bytes after 200 ms. young is the number of bytes that stay because they were used within the last minute.
func (s *Store) makeRoom(l *ledger, need, want int64) (young int64, err error) {
	all, err := s.sweepAndCount(l)
	if err != nil {
		return 0, err
	}
	var diskLeft int64 = 1 << 62
	if s.minFree > 0 {
		if diskLeft, err = s.diskLeft(l, need); err != nil {
			return 0, err
		}
		var could int64
		for _, e := range s.candidates(l, all) {
			could += e.size()
		}
		if diskLeft+could < need {
			// Other files fill the disk: removing everything would not suffice.
			diskLeft = 1 << 62
		}
	}
	before := l.Kept
	begin := time.Now()
	room := func() int64 {
		return min(s.quota-l.Kept-l.reserved()-l.cached(), diskLeft+before-l.Kept)
	}
	if room() < want {
		s.dropCaches(l, false)
	}
	s.expireWhile(l, all, func() bool {
		left := room()
		return left < want && (left < need || time.Since(begin) < cleanupSlice)
	})
	s.trimTombstones(l, all)
	for _, e := range all {
		if e.isWhole() && !e.pin && s.isFresh(e) {
			young += e.size()
		}
	}
	return young, nil
}

// expireWhile expires what is too old, then the least recently used while more returns true. done is false if it
// stopped to let others have the lock.
func (s *Store) expireWhile(l *ledger, all map[ID]*entry, more func() bool) (done bool) {
	begin := time.Now()
	for _, e := range s.candidates(l, all) {
		wanted := more()
		if !wanted && !s.isTooOld(e) {
			break
		}
		if !wanted && time.Since(begin) > cleanupSlice {
			return false
		}
		if n, ok := s.expire(l, e, s.expiryReason(e)); ok {
			l.Kept -= n
		}
	}
	return true
}

// Remove deletes the data and leaves a tombstone, even if the observation is pinned or open.
func (s *Store) Remove(owner string, id ID) error { return s.remove(owner, id, whyRemoved, "") }

// Replace removes an observation of which another one holds all; its tombstone names that.
func (s *Store) Replace(owner string, id, by ID) error { return s.remove(owner, id, whyReplaced, by) }

func (s *Store) remove(owner string, id ID, why string, by ID) error {
	return s.locked(func(l *ledger) error {
		o, err := s.Stat(owner, id)
		if err != nil {
			return err
		}
		e := s.entryOf(o)
		o.By = by
		freed, err := s.replaceByTombstone(l, e, o, why)
		l.Kept -= freed
		if err == nil {
			err = s.syncNames()
		}
		if err != nil {
			return fmt.Errorf("remove obs:%s: %w", id, err)
		}
		return nil
	})
}

// RemoveDamaged deletes what is left of an observation that [Store.Damaged] lists; any other is [ErrNotFound]. No
// tombstone is left: what made it is not known.
func (s *Store) RemoveDamaged(id ID) error {
	damaged, err := s.Damaged()
	if err != nil {
		return err
	}
	if !slices.Contains(damaged, id) {
		return notFound(id)
	}
	return s.locked(func(l *ledger) error {
		all, err := s.scan(true)
		if err != nil {
			return err
		}
		e := all[id]
		if e == nil {
			return notFound(id)
		}
		s.markRecount(l, id)
		size := e.size()
		if err = s.removeBytes(e); err == nil && e.side {
			err = s.disk.Remove(e.name(sideExt))
		}
		if err != nil {
			return fmt.Errorf("remove obs:%s: %w", id, err)
		}
		l.Kept -= size
		return s.syncNames()
	})
}

// entryOf returns the entry of one observation as a scan would.
func (s *Store) entryOf(o Observation) *entry {
	e := &entry{id: o.ID, data: o.File, side: true, index: true, pin: o.Pinned}
	s.statEntry(e)
	return e
}

// Pin exempts an observation from age and quota; Pin(…, false) undoes it.
func (s *Store) Pin(owner string, id ID, pinned bool) error {
	// Take the ledger's lock, so that no other process is just removing the observation.
	return s.locked(func(*ledger) error {
		o, err := s.Stat(owner, id)
		if err != nil {
			return err
		}
		name := s.entryOf(o).name(pinExt)
		if !pinned {
			err = s.disk.Remove(name)
		} else if !o.Pinned {
			var f *storefs.File
			if f, err = s.disk.Create(name); err == nil {
				err = f.Close()
			}
		}
		if err == nil {
			err = s.syncNames()
		}
		if err != nil {
			return fmt.Errorf("pin obs:%s: %w", id, err)
		}
		return nil
	})
}
