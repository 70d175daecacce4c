package observations

import (
	"errors"
	"slices"
	"strings"
	"time"
)

const (
	tidyEvery     = time.Hour // between two looks at ages, by all processes together
	maxTombstones = 10_000
	tombstoneAge  = 90 * 24 * time.Hour

	patience = 5 * time.Millisecond // for the lock, where others clean up as well
)

// start tries the lock, and clears away what dead processes left. It costs two
// short reads where they left nothing. Only where the store cannot be used at
// all does it fail.
func (s *Store) start() error {
	err := s.lockedWithin(patience, func(l *ledger) error {
		s.schedule(l)
		return s.sweep(l)
	})
	if errors.Is(err, ErrNoRoom) {
		return nil // busy: another process is at it
	}
	return err
}

// sweep removes what dead processes had under their hands. The names of it say
// which observations to look at: one without a sidecar never was, one with a
// tombstone is finished being removed, any other was acknowledged and stays.
func (s *Store) sweep(l *ledger) error {
	processes := s.newCensus()
	defer func() {
		if l.swept != processes {
			processes.close()
		}
	}()
	var left []string
	err := s.disk.names(tmpDir, func(name string) {
		stem, ext, _ := strings.Cut(name, ".")
		proc, isLive := stem, "."+ext == liveExt && isProcess(stem)
		if !isLive {
			var ours bool
			if proc, _, ours = parseKey(stem); !ours || !ofTmp("."+ext) {
				return
			}
		}
		if !processes.lives(proc) && !isLive {
			left = append(left, name)
		}
	})
	if err != nil {
		return err
	}
	worked := map[ID]bool{}
	for k := range l.Held {
		proc, id, ok := parseKey(k)
		if ok && processes.lives(proc) {
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
		all, err := s.survey(true)
		if err != nil {
			return err
		}
		for id := range worked {
			if e := all[id]; e != nil {
				if err := s.finish(e); err != nil {
					return err
				}
			}
		}
		s.recount(l, all)
	}
	for _, name := range left {
		l.marks = append(l.marks, tmpDir+"/"+name)
	}
	l.swept = processes
	return nil
}

func ofTmp(ext string) bool {
	return slices.Contains([]string{dataExt, indexExt, sideExt, goneExt}, ext)
}

// finish brings to its end what a process died over.
func (s *Store) finish(e *entry) error {
	if e.doubt != nil {
		return e.doubt
	}
	if e.side {
		if o, err := s.sidecar(e.id); err != nil || o.Expired == nil {
			return nil //nolint:nilerr // in doubt nothing is taken
		}
	}
	return s.removeBytes(e)
}

// removeBytes removes all of an observation but its sidecar.
func (s *Store) removeBytes(e *entry) error {
	if e.data != "" {
		if err := s.disk.remove(observationsDir + "/" + e.data); err != nil {
			return err
		}
		e.data, e.dataSize = "", 0
	}
	if e.index {
		if err := s.disk.remove(e.name(indexExt)); err != nil {
			return err
		}
		e.index, e.indexSize = false, 0
	}
	if e.pin {
		if err := s.disk.remove(e.name(pinExt)); err != nil {
			return err
		}
		e.pin = false
	}
	return nil
}

// tidy looks at ages, once an hour among all processes. What goes wrong is
// tried again in a minute: the call that came by does not suffer from it.
func (s *Store) tidy() {
	if s.now().UnixNano() < s.tidied.Load() {
		return
	}
	s.tidied.Store(s.now().Add(time.Minute).UnixNano())
	_ = s.lockedWithin(patience, func(l *ledger) error {
		now := s.now()
		if since := now.Sub(l.Swept); since >= 0 && since < tidyEvery { // another process did
			s.schedule(l)
			return nil
		}
		if err := s.sweep(l); err != nil {
			return err
		}
		all, err := s.count(l)
		if err != nil {
			return err
		}
		if _, done := s.expireWhile(l, all, func() bool { return false }); !done {
			s.tidied.Store(now.Add(time.Second).UnixNano())
			return nil
		}
		s.trimTombstones(l, all)
		s.removeStrays(l, all)
		l.Swept = now.UTC().Round(0)
		s.schedule(l)
		return nil
	})
}

func (s *Store) schedule(l *ledger) {
	s.tidied.Store(l.Swept.Add(tidyEvery).UnixNano())
	if now := s.now(); l.Swept.After(now) { // the clock was set back
		s.tidied.Store(now.UnixNano())
	}
}

// trimTombstones removes the oldest beyond their number and their share of the
// quota (a sixteenth), and those that are too old.
func (s *Store) trimTombstones(l *ledger, all map[ID]*entry) {
	var stones []*entry
	holders := l.holders()
	for id, e := range all {
		if e.side && e.data == "" && e.doubt == nil && !holders[id] {
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
		// A sidecar of another version is not ours to judge.
		if _, err := s.sidecar(e.id); errors.Is(err, errForeign) {
			continue
		}
		s.unsettle(l, e.id)
		if s.disk.remove(e.name(sideExt)) == nil {
			l.Kept -= e.sideSize
		}
	}
}

// removeStrays removes files with our names that no sidecar speaks of, when
// they are as old as an observation may be. Those of dead processes went
// before, at once; these come from a store that was copied or lost its state.
func (s *Store) removeStrays(l *ledger, all map[ID]*entry) {
	holders := l.holders()
	for id, e := range all {
		if e.side || e.doubt != nil || holders[id] || s.now().Sub(e.used) <= s.maxAge {
			continue
		}
		size := e.size()
		s.unsettle(l, id)
		if s.removeBytes(e) == nil {
			l.Kept -= size
		}
	}
}
