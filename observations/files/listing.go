package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// listing has the sidecars that this process has read, each for as long as its mark does not change. Every use asks the
// disk for names and marks, so changes by other processes count, and there is no file that a crash could tear.
type listing struct {
	sync.Mutex
	entries map[backend.ID]*entry
}

// sidecar is the content of a sidecar that had this mark.
type sidecar struct {
	mark tree.Mark
	o    *backend.Observation // shared, never changed; without its receipt
	err  error                // that of readUnpinned
}

// maxRemembered is the size in bytes, without the receipt, up to which a sidecar is remembered.
const maxRemembered = 8 << 10

// refresh returns the entries with their sidecars, as they are now, by ID. The caller holds the lock of the listing as
// long as it uses them.
func (s *Store) refresh() ([]*entry, error) {
	all, err := s.files.scan(false)
	if err != nil {
		return nil, err
	}
	for id, old := range s.listing.entries {
		if e := all[id]; e != nil {
			e.sidecar = old.sidecar
		}
	}
	s.listing.entries = all
	entries := slices.SortedFunc(maps.Values(all), func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	var group sync.WaitGroup
	for chunk := range slices.Chunk(entries, len(entries)/runtime.GOMAXPROCS(0)+1) {
		group.Go(func() {
			for _, e := range chunk {
				s.refreshSidecar(e)
			}
		})
	}
	group.Wait()
	return entries, nil
}

func (s *Store) refreshSidecar(e *entry) {
	if !e.side {
		return
	}
	// The mark is older than what is read: if both differ, it is read again next time.
	var mark tree.Mark
	if info, err := s.files.disk.Stat(e.name(sideExt)); err == nil {
		mark = tree.MarkOf(info)
		if k := e.sidecar; k != nil && k.mark == mark && (k.err == nil || errors.Is(k.err, backend.ErrNotFound)) {
			return
		}
	}
	o, failed := s.files.readUnpinned(e.id)
	if mark.Size-int64(len(o.Stats.Receipt)) > maxRemembered {
		mark = tree.Mark{}
	}
	o.Stats.Receipt = ""
	e.sidecar = &sidecar{mark, &o, failed}
}

func (s *Store) Listing(owner string, tombstones, torn bool) (all []*backend.Observation, bad []backend.ID, err error) {
	s.quota.tidyIfDue()
	s.listing.Lock()
	defer s.listing.Unlock()
	entries, err := s.refresh()
	if err == nil {
		all, err = s.listed(entries, owner, tombstones)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list observations: %w", err)
	}
	if torn {
		bad, _ = s.damaged(entries)
	}
	return all, bad, nil
}

func (s *Store) listed(entries []*entry, owner string, tombstones bool) ([]*backend.Observation, error) {
	list := make([]*backend.Observation, 0, len(entries))
	for _, e := range entries {
		if !e.side || e.data == "" && !tombstones {
			continue
		}
		o, err := e.sidecar.o, e.sidecar.err
		switch {
		case errors.Is(err, backend.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		case owner != "" && o.Owner != owner, o.Expired != nil && !tombstones:
			continue
		}
		if lost := o.Expired == nil && e.data == "" && s.isLost(*o); lost || e.pin {
			c := *o
			c.Lost, c.Pinned = lost, e.pin
			o = &c
		}
		list = append(list, o)
	}
	return list, nil
}

// Damaged lists data without a valid sidecar, and sidecars without data that are not tombstones. Data of the last
// minute, or whose sidecar is being written, are not listed: the sidecar comes last.
func (s *Store) Damaged() (damaged []backend.ID, err error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	entries, err := s.refresh()
	if err == nil {
		damaged, err = s.damaged(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("list damaged observations: %w", err)
	}
	return damaged, nil
}

func (s *Store) damaged(entries []*entry) ([]backend.ID, error) {
	committing, err := s.files.beingCommitted() // after the names: a sidecar stays in tmp/ until it is in place
	if err != nil {
		return nil, err
	}
	var damaged []backend.ID
	for _, at := range entries {
		if at.side && at.sidecar.err == nil && (at.whole || at.sidecar.o.Expired != nil) {
			continue
		}
		e := *at
		s.files.statEntry(&e)
		if e.err != nil {
			return nil, e.err
		}
		if !e.side && (e.data == "" || s.files.now().Sub(e.used) < freshFor || committing[e.id]) {
			continue
		}
		o, err := s.files.readSidecar(e.id)
		// The second case is a tombstone that was removed meanwhile.
		if errors.Is(err, backend.ErrForeign) || e.data == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil && !errors.Is(err, backend.ErrNotFound) { // a failing disk says nothing about the sidecar
			return nil, err
		}
		if err != nil || o.Expired == nil && e.data == "" && s.isLost(o) {
			damaged = append(damaged, e.id)
		}
	}
	return damaged, nil
}
