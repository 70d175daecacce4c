package observations

import (
	"errors"
	"time"
)

// expire makes a tombstone of an observation, where nobody reads it and it was
// not used since it was listed.
func (s *Store) expire(l *ledger, e *entry, why string) (freed int64, ok bool) {
	data, o, err := s.seize(e)
	if data == nil {
		return 0, false
	}
	defer data.release()
	if err != nil { // damaged: nobody can open it any more, and nobody can be told
		size := e.size()
		s.unsettle(l, e.id)
		if s.removeBytes(e) != nil || s.disk.remove(e.name(sideExt)) != nil {
			return 0, false
		}
		e.side, e.sideSize = false, 0
		return size, true
	}
	freed, err = s.bury(l, e, o, why)
	return freed, err == nil
}

// seize takes an observation's lock alone, so that no reader comes in, and its
// sidecar. data is nil where it must stay; the error says that its sidecar is damaged.
func (s *Store) seize(e *entry) (data *file, o Observation, err error) {
	data, err = s.disk.open(observationsDir+"/"+e.data, false)
	if err != nil {
		return nil, o, err
	}
	stays := true
	defer func() {
		if stays {
			data.release()
			data = nil
		}
	}()
	if alone, err := data.lock(true); err != nil || !alone {
		return data, o, err
	}
	now, err := s.disk.stat(e.name(sideExt))
	if err != nil || !now.ModTime().Equal(e.used) {
		return data, o, err
	}
	o, err = s.sidecar(e.id)
	stays = errors.Is(err, errForeign) || (err != nil && !errors.Is(err, ErrNotFound))
	return data, o, err
}

// expirable is expire without doing it.
func (s *Store) expirable(e *entry) bool {
	data, _, _ := s.seize(e)
	if data != nil {
		data.release()
	}
	return data != nil
}

// bury writes the tombstone and removes the bytes. In this order a reader of
// any process finds either all of it or the tombstone; the .gone file tells a
// sweep to finish it, and stands until the ledger is written. On a full disk the
// bytes must go first.
func (s *Store) bury(l *ledger, e *entry, o Observation, why string) (freed int64, err error) {
	if e.doubt != nil {
		return 0, e.doubt
	}
	if err := s.announce(); err != nil && !isFull(err) {
		return 0, err
	}
	stone, err := o.tombstone(why, s.now()).encode(maxTombstone)
	if err != nil {
		return 0, err
	}
	before := e.size()
	s.mark(l, e.id)
	k := key(s.process(), e.id)
	err = s.place(k, sideExt, stone)
	if err == nil {
		err = s.syncNames() // else a loss of power could take the bytes and not leave the tombstone
	}
	if err == nil {
		err = s.removeBytes(e)
	} else if isFull(err) {
		if err = s.removeBytes(e); err == nil {
			err = s.place(k, sideExt, stone)
		}
	}
	if err == nil {
		e.sideSize, e.used = int64(len(stone)), s.now()
	}
	return before - e.size(), err
}

// mark names an observation whose bytes are about to go, until the ledger is written: who finds the mark of a dead process finishes its
// work, and counts all again.
func (s *Store) mark(l *ledger, id ID) {
	name := tmpDir + "/" + key(s.process(), id) + goneExt
	if m, err := s.disk.create(name); err == nil {
		_ = m.File.Close()
		l.marks = append(l.marks, name)
	}
}

// unsettle is mark where there is nothing to finish, so that one of several is enough.
func (s *Store) unsettle(l *ledger, id ID) {
	if len(l.marks) == 0 && s.announce() == nil {
		s.mark(l, id)
	}
}

// place writes one small file beside an observation: whole or not at all. Its
// time is the store's clock.
func (s *Store) place(k, ext string, content []byte) error {
	_, id, _ := parseKey(k)
	tmp := tmpDir + "/" + k + ext
	err := s.write(tmp, content, s.now())
	if err == nil {
		err = s.disk.rename(tmp, observationsDir+"/"+string(id)+ext)
	}
	if err != nil {
		_ = s.disk.remove(tmp)
	}
	return err
}

// write makes a file in tmp/, last used at a time where one is given, and tells
// every fault before it is renamed.
func (s *Store) write(tmp string, content []byte, at time.Time) error {
	f, err := s.disk.create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && s.fsync {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil && !at.IsZero() {
		err = s.disk.touch(tmp, at)
	}
	return err
}
