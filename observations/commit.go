package observations

import (
	"encoding/hex"
	"fmt"
	"time"
)

// Commit writes data, line index and sidecar, each by rename, the sidecar last.
// After it returns without error the observation survives the death of the
// process, and with [Options.Fsync] a loss of power.
//
// What a cap or the quota cut off is told in the observation (Dropped, Cause);
// a commit cuts off nothing more. Where the disk failed, or there is no room for
// what was in memory, that is the error, nothing is kept, and ReadAt works until
// Discard.
func (r *Recording) Commit(seen Seen) (Observation, error) {
	if r.ended != "" {
		return Observation{}, fmt.Errorf("commit obs:%s: it has %s already", r.id, map[string]string{
			committed: "been committed", failed: "failed", discarded: "been discarded"}[r.ended])
	}
	o, err := r.commit(seen)
	if err != nil {
		r.ended = failed
		return Observation{}, fmt.Errorf("not kept: %w", err)
	}
	r.ended = committed
	return o, nil
}

func (r *Recording) commit(seen Seen) (Observation, error) {
	if r.broken != nil {
		return Observation{}, r.broken
	}
	if err := r.drain(); err != nil {
		return Observation{}, err
	}
	o := newObservation(r.id, r.made, r.created)
	o.File = dataName(r.made.Tool, r.created, r.id, seen.Ext)
	o.Bytes, o.Dropped = r.flushed, r.dropped
	if r.short != nil && r.dropped > 0 {
		o.Cause = clip(r.short.Error(), 200)
	}
	o.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	o.Seen = seen.bounded()
	side, err := o.encode(maxSidecar)
	if err != nil {
		return Observation{}, err
	}
	lines := r.index.finish()
	if err := r.close(); err != nil {
		return Observation{}, err
	}
	used := r.s.now()
	if err := r.install(o.File, lines, side, used); err != nil {
		return Observation{}, err
	}
	r.s.settle(r.key, r.flushed+int64(len(lines)+len(side)))
	r.room = 0
	// What is handed back is what the sidecar says.
	if back, err := decode(side, r.id); err == nil {
		o = back
	}
	o.Used = used.Round(0)
	return o, nil
}

// drain writes what is still in memory: all of it or nothing.
func (r *Recording) drain() error {
	if r.file == nil {
		r.whole = r.buf
	}
	if err := r.spill(); err != nil {
		return err
	}
	all := int64(len(r.buf))
	if r.grant(all, 0) < all || r.room < r.need(all) {
		return r.Err()
	}
	if r.flushed+all == 0 && r.dropped > 0 { // an empty observation would be a lie
		return r.Err()
	}
	r.flush(r.buf, 0)
	if r.broken != nil {
		return r.broken
	}
	r.buf = nil
	return nil
}

// close closes the file, telling every fault while nothing is in place yet.
func (r *Recording) close() error {
	var err error
	if r.s.fsync {
		err = r.file.Sync()
	}
	if e := r.file.Close(); err == nil {
		err = e
	}
	r.file = nil
	return err
}

// install renames the three files into place. Where a step fails, what was
// done is undone, as far as the disk lets it; Discard tries again.
func (r *Recording) install(data string, lines, side []byte, used time.Time) error {
	disk := r.s.disk
	base := observationsDir + "/" + string(r.id)
	data = observationsDir + "/" + data
	tmp := tmpDir + "/" + r.key
	steps := []func() error{
		func() error { return r.s.write(tmp+indexExt, lines, time.Time{}) },
		// Before the first rename: a sweep must find the ID in tmp/ until the last.
		func() error { return r.s.write(tmp+sideExt, side, used) },
		func() error {
			err := disk.rename(r.name, data)
			if err == nil {
				r.name = data
			}
			return err
		},
		func() error { return disk.rename(tmp+indexExt, base+indexExt) },
		func() error { return r.s.syncNames() },
		func() error { return disk.rename(tmp+sideExt, base+sideExt) },
		func() error { return r.s.syncNames() },
	}
	for _, step := range steps {
		err := step()
		if err == nil {
			continue
		}
		_ = r.undo()
		if r.name == data && disk.rename(data, tmp+dataExt) == nil {
			r.name = tmp + dataExt
		}
		return err
	}
	return nil
}

// undo removes all of a commit but the data: the sidecar first, as it is what
// makes an observation.
func (r *Recording) undo() error {
	base, tmp := observationsDir+"/"+string(r.id), tmpDir+"/"+r.key
	var err error
	for _, name := range []string{base + sideExt, base + indexExt, tmp + sideExt, tmp + indexExt} {
		if e := r.s.disk.remove(name); err == nil {
			err = e
		}
	}
	return err
}

// syncNames makes what was renamed, made or removed so far survive power loss.
func (s *Store) syncNames() error {
	if !s.fsync {
		return nil
	}
	return s.disk.sync(observationsDir)
}
