package observations

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// List returns this owner's observations, newest first; tombstones only where
// asked for. owner "" means all. Receipts are left out (they are most of a
// sidecar): [Store.Look] has them. With the tombstones come those whose data are
// lost, marked so. What else is damaged, or written by a later version, is not listed.
func (s *Store) List(owner string, tombstones bool) ([]Observation, error) {
	s.tidy()
	all, err := s.survey(false)
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	shown := make([]*entry, 0, len(all))
	for _, e := range all {
		if e.side && (e.data != "" || tombstones) {
			shown = append(shown, e)
		}
	}
	found := make([]Observation, len(shown))
	err = each(len(shown), func(i int) error {
		e := shown[i]
		o, err := s.unpinned(e.id)
		switch {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		case owner != "" && o.Owner != owner, o.Expired != nil && !tombstones:
			return nil
		}
		o.Lost = o.Expired == nil && e.data == "" && s.lost(o)
		o.Seen.Receipt, o.Pinned = "", e.pin
		found[i] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	list := slices.DeleteFunc(found, func(o Observation) bool { return o.ID == "" })
	slices.SortFunc(list, func(a, b Observation) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return list, nil
}

// lost says that the data of an observation are gone without a tombstone. Opening it looks twice: it may have been
// listed, or be on its way out, at this moment.
func (s *Store) lost(o Observation) bool {
	r, err := s.open(o.Owner, o.ID)
	if err == nil {
		_ = r.Close()
	}
	return errors.Is(err, ErrDamaged)
}

// Whose says who owns an observation: for who may read all of the store. Errors are those of [Store.Look], but that
// an expired one has its owner too.
func (s *Store) Whose(id ID) (string, error) {
	o, err := s.sidecar(id)
	if errors.Is(err, ErrNotFound) {
		err = notFound(id)
	}
	return o.Owner, err
}

// IDs are those of all observations there are now, whoever's and whichever process made them, by the
// names in the store: nothing is opened.
func (s *Store) IDs() (map[ID]bool, error) {
	all, err := s.survey(false)
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	ids := make(map[ID]bool, len(all))
	for id, e := range all {
		if e.side && e.data != "" {
			ids[id] = true
		}
	}
	return ids, nil
}

// Stamp changes whenever an observation is made or removed, by whatever process, but not with every
// change within the same few milliseconds. It costs one look at a directory.
func (s *Store) Stamp() (time.Time, error) {
	info, err := s.disk.stat(observationsDir)
	if err != nil {
		return time.Time{}, fmt.Errorf("look at the store: %w", err)
	}
	return info.ModTime(), nil
}

// each does the same for so many, several at a time where they are many; it
// goes on after an error, and returns one of them.
func each(n int, do func(i int) error) error {
	workers := 1
	if n > 200 {
		workers = min(runtime.GOMAXPROCS(0), 8)
	}
	var (
		group sync.WaitGroup
		next  atomic.Int64
		fault atomic.Pointer[error]
	)
	for range workers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					fault.Store(&err)
				}
			}
		})
	}
	group.Wait()
	if err := fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Look returns what is known of an observation without opening it: it is no
// use. The errors are those of [Store.Open].
func (s *Store) Look(owner string, id ID) (Observation, error) { return s.owned(owner, id) }

// Usage says what the store holds now.
type Usage struct {
	Observations int   // tombstones not counted
	Bytes        int64 // of data, indexes and sidecars: what counts against the quota
	Quota        int64
	Free         int64 // on the disk
}

// Usage counts what the store holds now.
func (s *Store) Usage() (Usage, error) {
	u := Usage{Quota: s.quota}
	all, err := s.survey(true)
	if err == nil {
		u.Free, err = s.disk.room()
	}
	if err != nil {
		return Usage{}, fmt.Errorf("measure store: %w", err)
	}
	for _, e := range all {
		if e.doubt != nil {
			return Usage{}, fmt.Errorf("measure store: %w", e.doubt)
		}
		u.Bytes += e.size()
		if e.side && e.data != "" {
			u.Observations++
		}
	}
	return u, nil
}

// Damaged lists the IDs of which half is missing or unreadable: data without a
// sound sidecar, or a sidecar whose data are gone though it is no tombstone. Data that
// came this minute, or whose sidecar is being written, may be waiting for it, which comes last: they are not among them.
func (s *Store) Damaged() ([]ID, error) {
	all, err := s.survey(true)
	if err != nil {
		return nil, fmt.Errorf("list damaged observations: %w", err)
	}
	coming, err := s.coming() // asked after the survey: a sidecar is here until it is there
	if err != nil {
		return nil, fmt.Errorf("list damaged observations: %w", err)
	}
	var damaged []ID
	for id, e := range all {
		if e.doubt != nil {
			return nil, fmt.Errorf("list damaged observations: %w", e.doubt)
		}
		if !e.side && (e.data == "" || s.now().Sub(e.used) < freshFor || coming[id]) {
			continue
		}
		o, err := s.sidecar(id)
		if errors.Is(err, errForeign) || e.data == "" && errors.Is(err, fs.ErrNotExist) { // a tombstone that went meanwhile
			continue
		}
		if err != nil && !errors.Is(err, ErrNotFound) { // the disk fails: it says nothing of the sidecar
			return nil, fmt.Errorf("list damaged observations: %w", err)
		}
		if err != nil || o.Expired == nil && e.data == "" && s.lost(o) {
			damaged = append(damaged, id)
		}
	}
	slices.Sort(damaged)
	return damaged, nil
}

// coming are the IDs that a process has in its hands: their sidecar stands in tmp/ until it is in place.
func (s *Store) coming() (map[ID]bool, error) {
	ids := map[ID]bool{}
	err := s.disk.names(tmpDir, func(name string) {
		stem, _, _ := strings.Cut(name, ".")
		if _, id, ok := parseKey(stem); ok {
			ids[id] = true
		}
	})
	if err != nil && s.disk.lacks != nil { // nothing can be written here
		err = nil
	}
	return ids, err
}
