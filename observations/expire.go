package observations

import (
	"cmp"
	"errors"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// expire replaces an observation by a tombstone, unless it is open or was used since it was listed.
func (s *Store) expire(l *ledger, e *entry, why string) (freed int64, ok bool) {
	data, o, err := s.lockForExpiry(e)
	if data == nil {
		return 0, false
	}
	defer data.UnlockAndClose()
	if err != nil { // a damaged sidecar names no owner and no call: leave no tombstone
		size := e.size()
		s.markRecount(l, e.id)
		if s.removeBytes(e) != nil || s.disk.Remove(e.name(sideExt)) != nil {
			return 0, false
		}
		e.side, e.sideSize = false, 0
		return size, true
	}
	freed, err = s.replaceByTombstone(l, e, o, why)
	return freed, err == nil
}

// lockForExpiry locks an observation exclusively, so that no reader opens it, and reads its sidecar. data is nil if the
// observation must stay; an error with data means that its sidecar is damaged.
func (s *Store) lockForExpiry(e *entry) (data *storefs.File, o Observation, err error) {
	data, err = s.disk.Open(storefs.ObservationsDir+"/"+e.data, false)
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
	now, err := s.disk.Stat(e.name(sideExt))
	if err != nil || !now.ModTime().Equal(e.used) {
		return data, o, err
	}
	o, err = s.readSidecar(e.id)
	stays = errors.Is(err, errForeign) || (err != nil && !errors.Is(err, ErrNotFound))
	return data, o, err
}

// expirable reports whether expire would succeed.
func (s *Store) expirable(e *entry) bool {
	data, _, _ := s.lockForExpiry(e)
	if data != nil {
		data.UnlockAndClose()
	}
	return data != nil
}

// replaceByTombstone writes the tombstone, then removes the bytes, so that a reader of any process finds either all of
// the observation or the tombstone. The .gone file makes a sweep finish the removal; it is removed once the ledger is
// written. On a full disk the bytes are removed first.
func (s *Store) replaceByTombstone(l *ledger, e *entry, o Observation, why string) (freed int64, err error) {
	if e.err != nil {
		return 0, e.err
	}
	if err := s.createLiveFile(); err != nil && !storefs.IsFull(err) {
		return 0, err
	}
	stone, err := o.tombstone(why, s.now()).encode(maxTombstone)
	if err != nil {
		return 0, err
	}
	before := e.size()
	s.markRemoval(l, e.id)
	k := key(s.processName(), e.id)
	err = s.writeBeside(k, sideExt, stone)
	if err == nil {
		err = s.syncNames() // else a power loss could remove the bytes and lose the tombstone
	}
	if err == nil {
		err = s.removeBytes(e)
	} else if storefs.IsFull(err) {
		if err = s.removeBytes(e); err == nil {
			err = s.writeBeside(k, sideExt, stone)
		}
	}
	if err == nil {
		e.sideSize, e.used = int64(len(stone)), s.now()
	}
	return before - e.size(), err
}

// markRemoval creates the .gone file of an observation whose bytes are about to be removed. It stays until the ledger
// is written: a sweep that finds the mark of a dead process finishes the removal and counts all files again.
func (s *Store) markRemoval(l *ledger, id ID) {
	name := storefs.TmpDir + "/" + key(s.processName(), id) + goneExt
	if m, err := s.disk.Create(name); err == nil {
		_ = m.File.Close()
		l.marks = append(l.marks, name)
	}
}

// markRecount makes a sweep count all files again if the ledger is not written. One mark suffices for several removals.
func (s *Store) markRecount(l *ledger, id ID) {
	if len(l.marks) == 0 && s.createLiveFile() == nil {
		s.markRemoval(l, id)
	}
}

// writeBeside writes a small file beside an observation, complete or not at all. Its mtime is the store's current
// time.
func (s *Store) writeBeside(k, ext string, content []byte) error {
	_, id, _ := parseKey(k)
	tmp := storefs.TmpDir + "/" + k + ext
	err := s.writeTmp(tmp, content, s.now())
	if err == nil {
		err = s.disk.Rename(tmp, id.file(ext))
	}
	if err != nil {
		_ = s.disk.Remove(tmp)
	}
	return err
}

// writeTmp writes a file in tmp/, which the caller renames if there was no error. If at is not zero it becomes the
// file's mtime.
func (s *Store) writeTmp(tmp string, content []byte, at time.Time) error {
	f, err := s.disk.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && s.fsync {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	if err == nil && !at.IsZero() {
		err = s.disk.Touch(tmp, at)
	}
	return err
}
