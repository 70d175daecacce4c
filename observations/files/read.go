package files

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

func (s *Store) Stat(owner string, id backend.ID) (backend.Observation, error) {
	if !id.Valid() {
		return backend.Observation{}, backend.Malformed(string(id))
	}
	o, err := s.files.readSidecar(id)
	if err != nil && !errors.Is(err, backend.ErrNotFound) {
		return backend.Observation{}, fmt.Errorf("open obs:%s: %w", id, err)
	}
	if err != nil || o.Owner != owner {
		return backend.Observation{}, backend.NotFound(id)
	}
	if o.Expired != nil {
		return backend.Observation{}, &backend.ExpiredError{Observation: o}
	}
	return o, nil
}

// blob is the open data file of an observation, under a shared lock.
type blob struct {
	*storefs.File
	s *Store
	o backend.Observation
}

// Open implements [backend.Backend]. It expires what is too old.
func (s *Store) Open(owner string, id backend.ID) (backend.Observation, backend.Blob, error) {
	s.quota.tidyIfDue()
	o, err := s.Stat(owner, id)
	if err != nil {
		return o, nil, err
	}
	if !o.Pinned && s.files.now().Sub(o.Used) > s.quota.maxAge { // no sweep has removed it yet
		_ = s.quota.lockedWithin(lockPatience, func(l *ledger) error {
			if e := s.files.entryOf(o); s.quota.isTooOld(e) && !s.quota.isFresh(e) {
				l.expire(e, backend.WhyAge)
			}
			return nil
		})
	}
	return s.OpenAny(owner, id)
}

// Use implements [backend.Backend]. It fails in a store that became read-only.
func (s *Store) Use(id backend.ID, at time.Time) error {
	return s.files.disk.Touch(pathOf(id, sideExt), at)
}

// OpenAny opens an observation of any age. A process that expires an observation locks the data exclusively, writes the
// tombstone and removes the data; OpenAny retries if it finds an observation between these steps.
func (s *Store) OpenAny(owner string, id backend.ID) (o backend.Observation, b backend.Blob, err error) {
	gone := 0
	for pause := time.Millisecond; ; pause *= 2 {
		if o, err = s.Stat(owner, id); err != nil {
			return o, nil, err
		}
		data, err := s.files.disk.Open(storefs.ObservationsDir+"/"+o.File, false)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if gone++; gone > 1 { // an expiring process would have written a tombstone by now
				return o, nil, fmt.Errorf("%w: obs:%s: its data file %s is missing", backend.ErrDamaged, id, o.File)
			}
			continue
		case errors.Is(err, storefs.ErrNotRegular):
			return o, nil, fmt.Errorf("%w: obs:%s: %s is not a file", backend.ErrDamaged, id, o.File)
		case err != nil:
			return o, nil, fmt.Errorf("open obs:%s: %w", id, err)
		}
		ok, err := data.LockLinked(false)
		if ok {
			return s.checkSize(o, data)
		}
		_ = data.File.Close()
		if err != nil {
			return o, nil, fmt.Errorf("open obs:%s: %w", id, noLocks(err))
		}
		if pause > 250*time.Millisecond {
			return o, nil, fmt.Errorf("open obs:%s: it is being removed", id)
		}
		time.Sleep(pause)
	}
}

func (s *Store) checkSize(o backend.Observation, data *storefs.File) (backend.Observation, backend.Blob, error) {
	info, err := data.Stat()
	if err != nil {
		err = fmt.Errorf("open obs:%s: %w", o.ID, err)
	} else if info.Size() != o.Bytes {
		err = fmt.Errorf("%w: obs:%s: %d bytes were stored, but the file has %d",
			backend.ErrDamaged, o.ID, o.Bytes, info.Size())
	}
	if err != nil {
		_ = data.File.Close()
		return o, nil, err
	}
	return o, &blob{data, s, o}, nil
}

func (b *blob) Lines() ([]byte, error) {
	lines, _, err := b.s.files.disk.Read(pathOf(b.o.ID, indexExt), backend.MaxIndex(b.o.Bytes))
	return lines, err
}

// Path implements [backend.Blob].
func (b *blob) Path() (string, error) { return b.s.SavedTo(b.o), nil }

// SetLines stores a rebuilt index if possible. It adds its size to the quota file first: that may count too much, never
// too little.
func (b *blob) SetLines(lines []byte) {
	counted := b.s.quota.lockedWithin(lockPatience, func(l *ledger) error {
		if err := b.s.files.createLiveFile(); err != nil {
			return err
		}
		l.add(b.o.Owner, int64(len(lines)))
		return nil
	})
	if counted == nil {
		_ = b.s.files.writeBeside(key(b.s.files.processName(), b.o.ID), indexExt, lines, b.s.files.now())
	}
}

// isLost reports whether the data of an observation are missing although it has not expired. It uses OpenAny, which
// retries, because the observation may be expiring at this moment.
func (s *Store) isLost(o backend.Observation) bool {
	_, b, err := s.OpenAny(o.Owner, o.ID)
	if err == nil {
		_ = b.Close()
	}
	return errors.Is(err, backend.ErrDamaged)
}

func (s *Store) Owner(id backend.ID) (string, error) {
	o, err := s.files.readSidecar(id)
	if errors.Is(err, backend.ErrNotFound) {
		err = backend.NotFound(id)
	}
	return o.Owner, err
}

// IDs implements [backend.Backend] from the file names alone: it opens no file.
func (s *Store) IDs() (map[backend.ID]bool, error) {
	all, err := s.files.scan(false)
	if err != nil {
		return nil, fmt.Errorf("list observations: %w", err)
	}
	ids := make(map[backend.ID]bool, len(all))
	for id, e := range all {
		if e.isWhole() {
			ids[id] = true
		}
	}
	return ids, nil
}

// ModTime implements [backend.Backend] by one stat of a directory.
func (s *Store) ModTime() (time.Time, error) {
	info, err := s.files.disk.Stat(storefs.ObservationsDir)
	if err != nil {
		return time.Time{}, fmt.Errorf("stat store: %w", err)
	}
	return info.ModTime(), nil
}

func (s *Store) Usage() (backend.Usage, error) {
	u := backend.Usage{Quota: s.quota.limit, Ahead: s.quota.ahead, Bytes: s.quota.cachedNow()}
	all, err := s.files.scan(true)
	if err == nil {
		u.Free, err = s.files.disk.FreeBytes()
	}
	if err != nil {
		return backend.Usage{}, fmt.Errorf("measure store: %w", err)
	}
	for _, e := range all {
		if e.err != nil {
			return backend.Usage{}, fmt.Errorf("measure store: %w", e.err)
		}
		u.Bytes += e.size()
		if e.isWhole() {
			u.Observations++
		}
	}
	return u, nil
}
