package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// files performs what touches the disk of a store. Whatever must not run concurrently with another process needs the
// [ledger].
type files struct {
	dir   string // absolute
	disk  *storefs.FS
	fsync bool
	now   func() time.Time

	mu   sync.Mutex
	proc string        // name of this store's process in tmp/: <pid>-<random>
	live *storefs.File // tmp/<proc>.live, locked; nil until the first write
}

// entry describes the files of one ID.
type entry struct {
	id                            backend.ID
	owner                         string // "": not known, or not needed
	data                          string // name of the data file; "" in a tombstone
	side, index, pin              bool
	used                          time.Time // mtime of the sidecar, else of another file
	dataSize, sideSize, indexSize int64

	whole   bool     // the data are a regular file
	sidecar *sidecar // the decoded sidecar; only set in a listing

	// err is set if the disk could not report these files: then none of them is removed.
	err error
}

func (e *entry) size() int64 { return e.dataSize + e.sideSize + e.indexSize }

// name returns the name of a file beside the data.
func (e *entry) name(ext string) string { return pathOf(e.id, ext) }

// pathOf returns the path in the store of an observation's sidecar or index, by extension.
func pathOf(id backend.ID, ext string) string {
	return storefs.ObservationsDir + "/" + string(id) + ext
}

// scan lists a store by file names, with their sizes if asked for. Files with other names are ignored.
func (d *files) scan(sizes bool) (map[backend.ID]*entry, error) {
	all := map[backend.ID]*entry{}
	of := func(id backend.ID) *entry {
		e := all[id]
		if e == nil {
			e = &entry{id: id}
			all[id] = e
		}
		return e
	}
	err := d.disk.VisitNames(storefs.ObservationsDir, func(name string, regular bool) {
		stem, ext, _ := strings.Cut(name, ".")
		id := backend.ID(stem)
		if !id.Valid() {
			if id, ok := backend.ParseDataName(name); ok {
				e := of(id)
				e.data, e.whole = name, regular
			}
			return
		}
		switch "." + ext {
		case sideExt:
			of(id).side = true
		case indexExt:
			of(id).index = true
		case pinExt:
			of(id).pin = true
		}
	})
	if err != nil {
		return nil, err
	}
	if sizes {
		for _, e := range all {
			d.statEntry(e)
		}
	}
	return all, nil
}

// statEntry fills in sizes and the last use, and clears the files that vanished meanwhile.
func (d *files) statEntry(e *entry) {
	stat := func(exists bool, name string, size *int64) bool {
		if !exists {
			return false
		}
		info, err := d.disk.Stat(storefs.ObservationsDir + "/" + name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			e.err = err
		}
		if err != nil || !info.Mode().IsRegular() {
			return false
		}
		*size = info.Size()
		if e.used.IsZero() {
			e.used = info.ModTime()
		}
		return true
	}
	// The sidecar is the first, because its mtime is the last use.
	e.side = stat(e.side, string(e.id)+sideExt, &e.sideSize)
	if !stat(e.data != "", e.data, &e.dataSize) {
		e.data = ""
	}
	e.index = stat(e.index, string(e.id)+indexExt, &e.indexSize)
}

// entryOf returns the entry of one observation as a scan would.
func (d *files) entryOf(o backend.Observation) *entry {
	e := &entry{id: o.ID, owner: o.Owner, data: o.File, side: true, index: true, pin: o.Pinned}
	d.statEntry(e)
	return e
}

// readSidecar returns the observation of an ID for any owner. A missing or invalid sidecar is ErrNotFound, because its
// owner is unknown.
func (d *files) readSidecar(id backend.ID) (backend.Observation, error) {
	o, err := d.readUnpinned(id)
	if err != nil {
		return o, err
	}
	_, err = d.disk.Stat(pathOf(id, pinExt))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // to ignore it could expire a pinned observation
		return backend.Observation{}, err
	}
	o.Pinned = err == nil
	return o, nil
}

// readUnpinned is readSidecar without checking for a pin.
func (d *files) readUnpinned(id backend.ID) (backend.Observation, error) {
	b, info, err := d.disk.Read(pathOf(id, sideExt), backend.MaxSidecar)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, storefs.ErrNotRegular), errors.Is(err, storefs.ErrTooLong):
		return backend.Observation{}, fmt.Errorf("%w: %w", backend.ErrNotFound, err)
	case err != nil: // a failing disk does not make an ID invalid
		return backend.Observation{}, err
	}
	o, err := backend.Decode(b, id)
	if err != nil {
		return backend.Observation{}, fmt.Errorf("%w: %w", backend.ErrNotFound, err)
	}
	o.Used = info.ModTime()
	return o, nil
}

// beingCommitted returns the IDs that some process is writing: their sidecar is in tmp/ until it is renamed into place.
func (d *files) beingCommitted() (map[backend.ID]bool, error) {
	ids := map[backend.ID]bool{}
	err := d.disk.VisitNames(storefs.TmpDir, func(name string, _ bool) {
		stem, _, _ := strings.Cut(name, ".")
		if _, id, ok := parseKey(stem); ok {
			ids[id] = true
		}
	})
	if err != nil && d.disk.Unwritable != nil { // there may be no tmp/, and no process can write here
		err = nil
	}
	return ids, err
}

// createLiveFile creates and locks this process's live file. It must exist before any other file of the process in
// tmp/.
func (d *files) createLiveFile() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range 5 {
		if d.live != nil {
			return nil
		}
		f, err := d.disk.Create(storefs.TmpDir + "/" + d.proc + liveExt)
		if err != nil {
			return err
		}
		ok, err := f.LockLinked(true)
		if err != nil {
			_ = d.disk.Remove(f.Name)
			_ = f.File.Close()
			d.proc = newProcess() // the old name is still in use if the file could not be removed
			return noLocks(err)
		}
		// ok is false if a sweep of another process locked or removed the file first.
		if ok {
			d.live = f
			return nil
		}
		f.UnlockAndClose()
		d.proc = newProcess()
	}
	return errors.New("create the live file of this process: other processes removed it five times")
}

func noLocks(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: this file system has no locks", err)
	}
	return err
}

// processName returns this store's name among the processes.
func (d *files) processName() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proc
}

// writeBeside writes a small file beside an observation, complete or not at all. at becomes its mtime.
func (d *files) writeBeside(k, ext string, content []byte, at time.Time) error {
	_, id, _ := parseKey(k)
	tmp := storefs.TmpDir + "/" + k + ext
	err := d.writeTmp(tmp, content, at)
	if err == nil {
		err = d.disk.Rename(tmp, pathOf(id, ext))
	}
	if err != nil {
		_ = d.disk.Remove(tmp)
	}
	return err
}

// writeTmp writes a file in tmp/, which the caller renames if there was no error. If at is not zero it becomes the
// file's mtime.
func (d *files) writeTmp(tmp string, content []byte, at time.Time) error {
	f, err := d.disk.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && d.fsync {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	if err == nil && !at.IsZero() {
		err = d.disk.Touch(tmp, at)
	}
	return err
}

// syncNames makes all renames, creations and removals so far survive a power loss, if [Options.Fsync] is set.
func (d *files) syncNames() error {
	if !d.fsync {
		return nil
	}
	return d.disk.SyncDir(storefs.ObservationsDir)
}

// lockForExpiry locks an observation exclusively, so that no reader opens it, and reads its sidecar. data is nil if the
// observation must stay; an error with data means that its sidecar is damaged.
func (d *files) lockForExpiry(e *entry) (data *storefs.File, o backend.Observation, err error) {
	data, err = d.disk.Open(storefs.ObservationsDir+"/"+e.data, false)
	if err != nil {
		return nil, o, err
	}
	stays := true
	defer func() {
		if stays {
			data.UnlockAndClose()
			data = nil
		}
	}()
	if alone, err := data.TryLock(true); err != nil || !alone {
		return data, o, err
	}
	now, err := d.disk.Stat(e.name(sideExt))
	if err != nil || !now.ModTime().Equal(e.used) {
		return data, o, err
	}
	o, err = d.readSidecar(e.id)
	stays = errors.Is(err, backend.ErrForeign) || (err != nil && !errors.Is(err, backend.ErrNotFound))
	return data, o, err
}

// expirable reports whether expire would succeed.
func (d *files) expirable(e *entry) bool {
	data, _, _ := d.lockForExpiry(e)
	if data != nil {
		data.UnlockAndClose()
	}
	return data != nil
}

// removeBytes removes all files of an observation but its sidecar.
func (d *files) removeBytes(e *entry) error {
	if e.data != "" {
		if err := d.disk.Remove(storefs.ObservationsDir + "/" + e.data); err != nil {
			return err
		}
		e.data, e.dataSize = "", 0
	}
	if e.index {
		if err := d.disk.Remove(e.name(indexExt)); err != nil {
			return err
		}
		e.index, e.indexSize = false, 0
	}
	if e.pin {
		if err := d.disk.Remove(e.name(pinExt)); err != nil {
			return err
		}
		e.pin = false
	}
	return nil
}

// finishRemoval completes the removal that a dead process had begun.
func (d *files) finishRemoval(e *entry) error {
	if e.err != nil {
		return e.err
	}
	if e.side {
		if o, err := d.readSidecar(e.id); err != nil || o.Expired == nil {
			return nil //nolint:nilerr // in doubt, keep the files
		}
	}
	return d.removeBytes(e)
}
