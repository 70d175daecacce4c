package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Writer is a [backend.Writer]. It creates its file at the first call of Room.
type Writer struct {
	s        *Store
	id       backend.ID
	owner    string
	file     *storefs.File // nil if it is not open
	name     string        // of the data file, relative to the store; "" without a file
	key      string        // of the reservation; "" without one
	reserved int64         // bytes reserved
	flushed  int64         // bytes in the file
	failed   bool          // Commit began, and has not succeeded
	ended    bool          // by Commit or Discard
}

func (s *Store) Create(p backend.Provenance, at time.Time) (w backend.Writer, err error) {
	for range 4 { // in case 60 random bits collide
		if w, err = s.CreateAs(backend.RandomID(), p, at); err == nil {
			break
		}
	}
	return w, err
}

// CreateAs implements [backend.Backend].
func (s *Store) CreateAs(id backend.ID, p backend.Provenance, _ time.Time) (backend.Writer, error) {
	s.quota.tidyIfDue()
	if !id.Valid() {
		return nil, backend.Malformed(string(id))
	}
	if _, err := s.files.disk.Stat(pathOf(id, sideExt)); err == nil { // a file that cannot be found is a free name
		return nil, fmt.Errorf("create obs:%s: %w", id, fs.ErrExist)
	}
	return &Writer{s: s, id: id, owner: p.Owner}, nil
}

func (w *Writer) ID() backend.ID { return w.id }

// Room implements [backend.Writer]. If the reservation is too small for n bytes, it is extended by what they need, or
// by ahead bytes if that is more and there is room.
func (w *Writer) Room(n, ahead int64) (int64, error) {
	if err := w.createFile(); err != nil {
		return 0, err
	}
	if w.roomNeeded(n) <= w.reserved {
		return n, nil
	}
	got, err := w.s.quota.reserve(w.owner, w.key, w.reserved, w.roomNeeded(n)-w.reserved, ahead)
	if w.reserved += got; err != nil && !errors.Is(err, backend.ErrNoRoom) {
		return 0, err
	}
	return min(n, max(0, n-(w.roomNeeded(n)-w.reserved))), err
}

// roomNeeded returns the bytes the observation takes with n more bytes, its index and its sidecar.
func (w *Writer) roomNeeded(n int64) int64 {
	return w.flushed + n + allowance + backend.MaxIndex(w.flushed+n)
}

func (w *Writer) createFile() error {
	if w.file != nil {
		return nil
	}
	if err := w.s.files.createLiveFile(); err != nil {
		return err
	}
	k := key(w.s.files.processName(), w.id)
	f, err := w.s.files.disk.Create(storefs.TmpDir + "/" + k + dataExt)
	if err != nil {
		return err
	}
	w.file, w.name, w.key = f, f.Name, k
	return nil
}

func (w *Writer) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	w.flushed += int64(n)
	return n, err
}

func (w *Writer) ReadAt(b []byte, off int64) (int, error) {
	if w.file == nil { // Commit closed it
		var err error
		if w.file, err = w.s.files.disk.Open(w.name, false); err != nil {
			return 0, err
		}
	}
	return w.file.ReadAt(b, off)
}

// Commit writes data, line index and sidecar, each by rename, the sidecar last. Once it returns nil the observation
// survives the death of the process, and with [Options.Fsync] a power loss. After an error ReadAt works until Discard.
func (w *Writer) Commit(o backend.Observation, lines []byte) (backend.Observation, error) {
	side, err := o.Encode(backend.MaxSidecar)
	if w.failed = true; err == nil {
		err = w.closeFile()
	}
	used := o.Used
	if used.IsZero() {
		used = w.s.files.now()
	}
	if err == nil {
		err = w.renameIntoPlace(o.File, lines, side, used)
	}
	if err != nil {
		return backend.Observation{}, err
	}
	w.s.quota.endReservation(w.key, w.owner, w.flushed+int64(len(lines)+len(side)))
	w.reserved, w.ended = 0, true
	// The sidecar may have truncated fields: return what was stored.
	if back, err := backend.Decode(side, w.id); err == nil {
		o = back
	}
	o.Used = used.Round(0)
	return o, nil
}

// closeFile syncs and closes the data file. It runs before the first rename, so that an error leaves nothing behind.
func (w *Writer) closeFile() error {
	var err error
	if w.s.files.fsync {
		err = w.file.Sync()
	}
	err = cmp.Or(err, w.file.Close())
	w.file = nil
	return err
}

// renameIntoPlace renames the three files into place. If a step fails it undoes the earlier ones as far as the disk
// permits; Discard tries again.
func (w *Writer) renameIntoPlace(data string, lines, side []byte, used time.Time) error {
	disk := w.s.files.disk
	data = storefs.ObservationsDir + "/" + data
	tmp := storefs.TmpDir + "/" + w.key
	steps := []func() error{
		func() error { return w.s.files.writeTmp(tmp+indexExt, lines, time.Time{}) },
		// Before the first rename: a sweep must find the ID in tmp/ until the last one.
		func() error { return w.s.files.writeTmp(tmp+sideExt, side, used) },
		func() error {
			err := disk.Rename(w.name, data)
			if err == nil {
				w.name = data
			}
			return err
		},
		func() error { return disk.Rename(tmp+indexExt, pathOf(w.id, indexExt)) },
		func() error { return w.s.files.syncNames() },
		func() error { return disk.Rename(tmp+sideExt, pathOf(w.id, sideExt)) },
		func() error { return w.s.files.syncNames() },
	}
	for _, step := range steps {
		err := step()
		if err == nil {
			continue
		}
		_ = w.undoCommit()
		if w.name == data && disk.Rename(data, tmp+dataExt) == nil {
			w.name = tmp + dataExt
		}
		return err
	}
	return nil
}

// undoCommit removes all files of a commit except the data. The sidecar is removed first: without it the observation
// does not exist.
func (w *Writer) undoCommit() error {
	tmp := storefs.TmpDir + "/" + w.key
	var err error
	for _, name := range []string{pathOf(w.id, sideExt), pathOf(w.id, indexExt), tmp + sideExt, tmp + indexExt} {
		err = cmp.Or(err, w.s.files.disk.Remove(name))
	}
	return err
}

func (w *Writer) Discard() error {
	if w.file != nil {
		_ = w.file.File.Close()
		w.file = nil
	}
	if w.ended || w.key == "" {
		return nil
	}
	w.ended = true
	var err error
	if w.failed {
		err = w.undoCommit()
	}
	err = cmp.Or(err, w.s.files.disk.Remove(w.name))
	if w.reserved > 0 {
		w.s.quota.endReservation(w.key, w.owner, 0)
		w.reserved = 0
	}
	return err
}
