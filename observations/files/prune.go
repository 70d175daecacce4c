package files

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// freshFor is the time after its last use in which an observation is never evicted or expired: a caller that received
// its ID needs time to use it.
const freshFor = time.Minute

// Prune implements [backend.Backend]. Its quota is for data: writers make room for the rest, such as tombstones.
func (s *Store) Prune(dry bool) (backend.Pruned, error) {
	var p backend.Pruned
	err := s.quota.locked(func(l *ledger) error {
		count := l.sweepAndCount
		if dry {
			count = l.count
		}
		all, err := count()
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.isWhole() {
				p.Kept++
				p.KeptBytes += e.dataSize
			}
		}
		for _, e := range l.candidates(all) {
			if !s.quota.isTooOld(e) && p.KeptBytes <= s.quota.limit {
				break
			}
			bytes, ok := e.dataSize, false
			if dry {
				ok = s.files.expirable(e)
			} else {
				ok = l.expire(e, s.quota.expiryReason(e))
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
		over := p.KeptBytes > s.quota.limit
		for _, e := range all {
			switch {
			case !e.isWhole():
			case e.pin && over:
				p.Pinned++
			case !e.pin && s.quota.isFresh(e) && (over || s.quota.isTooOld(e)):
				p.Fresh++
			}
		}
		if !dry {
			l.trimTombstones(all)
			l.removeStrays(all)
			l.Swept = s.files.now().UTC().Round(0)
			s.quota.scheduleTidy(l)
		}
		return nil
	})
	if err != nil {
		return backend.Pruned{}, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

// isWhole reports whether data and sidecar exist.
func (e *entry) isWhole() bool { return e.side && e.data != "" }

// isFresh reports whether the observation was used within freshFor. Copies in a cache never are: those that are not open
// can be made again.
func (q *quota) isFresh(e *entry) bool {
	if q.cache {
		return false
	}
	age := q.files.now().Sub(e.used)
	return age < freshFor && age > -freshFor
}

func (q *quota) isTooOld(e *entry) bool { return q.files.now().Sub(e.used) > q.maxAge }

func (q *quota) expiryReason(e *entry) string {
	if q.isTooOld(e) {
		return backend.WhyAge
	}
	return backend.WhyQuota
}

// candidates returns the observations that may be removed, least recently used first: whole, not pinned, not fresh, not
// being written. A last use in the future (the clock was set back) sorts last and is not fresh.
func (l *ledger) candidates(all map[backend.ID]*entry) []*entry {
	holders := l.writers()
	var list []*entry
	for id, e := range all {
		if e.isWhole() && e.err == nil && !e.pin && !holders[id] && !l.quota.isFresh(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.used.Compare(b.used) })
	return list
}

// makeRoom counts all files, expires what is too old, then the least recently used until want bytes are free, or need
// bytes after 200 ms; first those of the owner, if its quota has no room. young is the number of bytes that stay
// because they were used within the last minute.
func (l *ledger) makeRoom(owner string, need, want int64) (young int64, err error) {
	all, err := l.sweepAndCount()
	if err != nil {
		return 0, err
	}
	var diskLeft int64 = 1 << 62
	if l.quota.minFree > 0 {
		if diskLeft, err = l.diskLeft(need); err != nil {
			return 0, err
		}
		var could int64
		for _, e := range l.candidates(all) {
			could += e.size()
		}
		if diskLeft+could < need {
			// Other files fill the disk: removing everything would not suffice.
			diskLeft = 1 << 62
		}
	}
	before := l.Kept
	l.makeOwnRoom(owner, all, need, want)
	begin := time.Now()
	room := func() int64 {
		return min(l.quota.limit-l.Kept-l.reserved()-l.cached(), diskLeft+before-l.Kept)
	}
	if room() < want {
		l.dropCaches(false)
	}
	l.expireWhile(all, func() bool {
		left := room()
		return left < want && (left < need || time.Since(begin) < cleanupSlice)
	})
	l.trimTombstones(all)
	for _, e := range all {
		if e.isWhole() && !e.pin && l.quota.isFresh(e) {
			young += e.size()
		}
	}
	return young, nil
}

// expireWhile expires what is too old, then the least recently used while more returns true. done is false if it
// stopped to let others have the lock.
func (l *ledger) expireWhile(all map[backend.ID]*entry, more func() bool) (done bool) {
	begin := time.Now()
	for _, e := range l.candidates(all) {
		wanted := more()
		if !wanted && !l.quota.isTooOld(e) {
			break
		}
		if !wanted && time.Since(begin) > cleanupSlice {
			return false
		}
		l.expire(e, l.quota.expiryReason(e))
	}
	return true
}

func (s *Store) Remove(owner string, id backend.ID, why string, by backend.ID) error {
	return s.quota.locked(func(l *ledger) error {
		o, err := s.Stat(owner, id)
		if err != nil {
			return err
		}
		e := s.files.entryOf(o)
		o.By = by
		err = l.replaceByTombstone(e, o, why)
		if err == nil {
			err = s.files.syncNames()
		}
		if err != nil {
			return fmt.Errorf("remove obs:%s: %w", id, err)
		}
		return nil
	})
}

func (s *Store) RemoveDamaged(id backend.ID) error {
	damaged, err := s.Damaged()
	if err != nil {
		return err
	}
	if !slices.Contains(damaged, id) {
		return backend.NotFound(id)
	}
	return s.quota.locked(func(l *ledger) error {
		all, err := s.files.scan(true)
		if err != nil {
			return err
		}
		e := all[id]
		if e == nil {
			return backend.NotFound(id)
		}
		if err := l.remove(e); err != nil {
			return fmt.Errorf("remove obs:%s: %w", id, err)
		}
		return s.files.syncNames()
	})
}

func (s *Store) Pin(owner string, id backend.ID, pinned bool) error {
	// Take the ledger's lock, so that no other process is just removing the observation.
	return s.quota.locked(func(*ledger) error {
		o, err := s.Stat(owner, id)
		if err != nil {
			return err
		}
		name := s.files.entryOf(o).name(pinExt)
		if !pinned {
			err = s.files.disk.Remove(name)
		} else if !o.Pinned {
			var f *storefs.File
			if f, err = s.files.disk.Create(name); err == nil {
				err = f.Close()
			}
		}
		if err == nil {
			err = s.files.syncNames()
		}
		if err != nil {
			return fmt.Errorf("pin obs:%s: %w", id, err)
		}
		return nil
	})
}

// Rename implements [backend.Backend]: the sidecar is replaced by another one.
func (s *Store) Rename(owner string, id backend.ID, name string) error {
	return s.quota.locked(func(l *ledger) error {
		o, err := s.Stat(owner, id)
		if err != nil {
			return err
		}
		side, err := o.Renamed(name)
		if err != nil {
			return err
		}
		e := s.files.entryOf(o)
		before := e.size()
		l.markRecount(id)
		err = s.files.writeBeside(key(s.files.processName(), id), sideExt, side, o.Used)
		if err == nil {
			e.sideSize = int64(len(side))
			err = s.files.syncNames()
		}
		if l.add(owner, e.size()-before); err != nil {
			return fmt.Errorf("rename obs:%s: %w", id, err)
		}
		return nil
	})
}
