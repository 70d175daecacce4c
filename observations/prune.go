package observations

import (
	"fmt"
	"slices"
	"time"
)

// freshFor is how long after its last use an observation is not taken, neither to make room nor for its age:
// whoever was given its ID must have time to come back.
const freshFor = time.Minute

// Pruned says what a prune did.
type Pruned struct {
	Removed   int
	Bytes     int64
	Kept      int
	KeptBytes int64

	// Of those kept, how many are too old or too much, and why they stay.
	Fresh, Pinned, Busy int // used within a minute; pinned, which holds against the quota alone; in use, or not to be removed
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
			if e.whole() {
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
			var ok bool
			if dry {
				ok = s.expirable(e)
			} else if freed, ok = s.expire(l, e, s.why(e)); ok {
				l.Kept -= freed
			}
			if !ok {
				p.Busy++
				continue
			}
			kept -= freed
			p.Removed++
			p.Bytes += bytes
			p.Kept--
			p.KeptBytes -= bytes
		}
		over := kept+l.held() > s.quota
		for _, e := range all {
			switch {
			case !e.whole():
			case e.pin && over:
				p.Pinned++
			case !e.pin && s.fresh(e) && (over || s.aged(e)):
				p.Fresh++
			}
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

// whole says that an observation is there, not its tombstone nor a half of it.
func (e *entry) whole() bool { return e.side && e.data != "" }

// fresh says that whoever was given the ID may not have come back yet.
func (s *Store) fresh(e *entry) bool {
	age := s.now().Sub(e.used)
	return age < freshFor && age > -freshFor
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
	var list []*entry
	for id, e := range all {
		if e.whole() && e.doubt == nil && !e.pin && !holders[id] && !s.fresh(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return a.used.Compare(b.used) })
	return list
}

// makeRoom counts again, expires what is older than the age, then the least
// recently used, until want bytes are free, or need after a while. young is how many bytes stay
// because they were used within the last minute.
func (s *Store) makeRoom(l *ledger, need, want int64) (young int64, err error) {
	if err := s.sweep(l); err != nil {
		return 0, err
	}
	all, err := s.count(l)
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
	for _, e := range all {
		if e.whole() && !e.pin && s.fresh(e) {
			young += e.size()
		}
	}
	return young, nil
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
