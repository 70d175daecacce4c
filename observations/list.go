package observations

import (
	"errors"
	"fmt"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// isLost reports whether the data of an observation are missing although it has not expired. It uses open, which
// retries, because the observation may be expiring at this moment.
func (s *Store) isLost(o Observation) bool {
	r, err := s.open(o.Owner, o.ID)
	if err == nil {
		_ = r.Close()
	}
	return errors.Is(err, ErrDamaged)
}

// Owner returns the owner of an observation, for callers who may read the whole store. Its errors are those of
// [Store.Stat], but an expired observation has an owner too.
func (s *Store) Owner(id ID) (string, error) {
	o, err := s.files.readSidecar(id)
	if errors.Is(err, ErrNotFound) {
		err = notFound(id)
	}
	return o.Owner, err
}

// IDs returns the IDs of all observations of all owners and processes, from the file names alone: it opens no file.
func (s *Store) IDs() (map[ID]bool, error) {
	all, err := s.files.scan(false)
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	ids := make(map[ID]bool, len(all))
	for id, e := range all {
		if e.isWhole() {
			ids[id] = true
		}
	}
	return ids, nil
}

// ModTime changes when any process adds or removes an observation; changes within the same few milliseconds may share
// one time. It takes one stat of a directory.
func (s *Store) ModTime() (time.Time, error) {
	info, err := s.files.disk.Stat(storefs.ObservationsDir)
	if err != nil {
		return time.Time{}, fmt.Errorf("stat store: %w", err)
	}
	return info.ModTime(), nil
}

// Usage is what the store holds now.
type Usage struct {
	Observations int   // without tombstones
	Bytes        int64 // data, indexes, sidecars and caches, as counted against the quota
	Quota        int64
	Ahead        int64 // bytes of the quota that each writer reserves beyond what it has written
	Free         int64 // bytes on the disk
}

// Usage measures the store.
func (s *Store) Usage() (Usage, error) {
	u := Usage{Quota: s.quota.limit, Ahead: s.quota.reserveAhead(), Bytes: s.quota.cachedNow()}
	all, err := s.files.scan(true)
	if err == nil {
		u.Free, err = s.files.disk.FreeBytes()
	}
	if err != nil {
		return Usage{}, fmt.Errorf("measure store: %w", err)
	}
	for _, e := range all {
		if e.err != nil {
			return Usage{}, fmt.Errorf("measure store: %w", e.err)
		}
		u.Bytes += e.size()
		if e.isWhole() {
			u.Observations++
		}
	}
	return u, nil
}
