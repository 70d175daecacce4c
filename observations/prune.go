package observations

import (
	"fmt"
	"slices"
	"time"
)

// fresh is how long after its last use an observation is not taken to make room:
// whoever was given its ID must have time to come back.
const fresh = time.Minute

// Pruned says what a prune did.
type Pruned struct {
	Removed   int
	Bytes     int64
	Kept      int
	KeptBytes int64
}

// Prune expires what is older than the age, then the least recently used until
// the quota holds. Pinned ones, those used within a minute and those open in a
// reader of any process stay. dry only counts.
func (s *Store) Prune(dry bool) (Pruned, error) {
	var p Pruned
	err := s.locked(func(l *ledger) error {
		if !dry {
			if err := s.sweep(l); err != nil {
				return err
			}
		}
		all, err := s.count(l)
		if err != nil {
			return err
		}
		for _, e := range all {
			if e.side && e.data != "" {
				p.Kept++
				p.KeptBytes += e.dataSize
			}
		}
		kept := l.Kept
		for _, e := range s.candidates(l, all) {
			if !s.aged(e) && kept+l.held() <= s.quota {
				break
			}
			bytes, freed := e.dataSize, e.size()
			if !dry {
				var ok bool
				if freed, ok = s.expire(l, e, s.why(e)); !ok {
					continue
				}
				l.Kept -= freed
			} else if !s.expirable(e) {
				continue
			}
			kept -= freed
			p.Removed++
			p.Bytes += bytes
			p.Kept--
			p.KeptBytes -= bytes
		}
		if !dry {
			s.trimTombstones(l, all)
			s.removeStrays(l, all)
			l.Swept = s.now().UTC().Round(0)
			s.schedule(l)
		}
		return nil
	})
	if err != nil {
		return Pruned{}, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

func (s *Store) aged(e *entry) bool { return s.now().Sub(e.used) > s.maxAge }

func (s *Store) why(e *entry) string {
	if s.aged(e) {
		return whyAge
	}
	return whyQuota
}

// candidates are the observations that may go, least recently used first:
// whole, not pinned, not fresh, in no writer's hands. A time of last use in the
// future (a clock that was set back) is not fresh, but last.
func (s *Store) candidates(l *ledger, all map[ID]*entry) []*entry {
	holders := l.holders()
	now := s.now()
	var list []*entry
	for id, e := range all {
		age := now.Sub(e.used)
		if e.side && e.data != "" && e.doubt == nil && !e.pin && !holders[id] && (age >= fresh || age <= -fresh) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.used.Compare(b.used) })
	return list
}

// makeRoom counts again, expires what is older than the age, then the least
// recently used, until want bytes are free, or need after a while.
func (s *Store) makeRoom(l *ledger, need, want int64) error {
	if err := s.sweep(l); err != nil {
		return err
	}
	all, err := s.count(l)
	if err != nil {
		return err
	}
	var diskLeft int64 = 1 << 62
	if s.minFree > 0 {
		if diskLeft, err = s.diskLeft(l, need); err != nil {
			return err
		}
		var could int64
		for _, e := range s.candidates(l, all) {
			could += e.size()
		}
		if diskLeft+could < need {
			// Others filled the disk: giving all we have would not help.
			diskLeft = 1 << 62
		}
	}
	before := l.Kept
	begin := time.Now()
	s.expireWhile(l, all, func() bool {
		left := min(s.quota-l.Kept-l.held(), diskLeft+before-l.Kept)
		return left < want && (left < need || time.Since(begin) < slice)
	})
	s.trimTombstones(l, all)
	return nil
}

// expireWhile expires what is too old, then the least recently used while more
// is wanted. done is false where it stopped for others who wait for the lock.
func (s *Store) expireWhile(l *ledger, all map[ID]*entry, more func() bool) (freed int64, done bool) {
	begin := time.Now()
	for _, e := range s.candidates(l, all) {
		wanted := more()
		if !wanted && !s.aged(e) {
			break
		}
		if !wanted && time.Since(begin) > slice {
			return freed, false
		}
		if n, ok := s.expire(l, e, s.why(e)); ok {
			l.Kept -= n
			freed += n
		}
	}
	return freed, true
}

// Remove deletes the data and leaves a tombstone, also where it is pinned or being read.
func (s *Store) Remove(owner string, id ID) error {
	return s.locked(func(l *ledger) error {
		o, err := s.owned(owner, id)
		if err != nil {
			return err
		}
		freed, err := s.bury(l, s.entryOf(o), o, whyRemoved)
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

// entryOf is one observation as a survey would find it.
func (s *Store) entryOf(o Observation) *entry {
	e := &entry{id: o.ID, data: o.File, side: true, index: true, pin: o.Pinned}
	s.measure(e)
	return e
}

// Pin keeps an observation from expiry and quota; Pin(…, false) lets go of it.
func (s *Store) Pin(owner string, id ID, pinned bool) error {
	// Under the lock of those who clean up: what is pinned was not just taken.
	return s.locked(func(*ledger) error {
		o, err := s.owned(owner, id)
		if err != nil {
			return err
		}
		name := s.entryOf(o).name(pinExt)
		if !pinned {
			err = s.disk.remove(name)
		} else if !o.Pinned {
			var f *file
			if f, err = s.disk.create(name); err == nil {
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
