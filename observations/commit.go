package observations

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Commit writes data, line index and sidecar, each by rename, the sidecar last. Once it returns nil the observation
// survives the death of the process, and with [Options.Fsync] a power loss.
//
// The observation reports what a cap or the quota dropped (Dropped, Cause); Commit drops nothing more. If the disk
// failed, or the bytes still in memory have no room, Commit returns that error and nothing is stored; ReadAt works
// until Discard.
func (r *Recording) Commit(seen Stats) (Observation, error) {
	if r.state != "" {
		return Observation{}, fmt.Errorf("commit obs:%s: it has %s already", r.id, map[string]string{
			committed: "been committed", failed: "failed", discarded: "been discarded"}[r.state])
	}
	o, err := r.commit(seen)
	if err != nil {
		r.state = failed
		return Observation{}, fmt.Errorf("not kept: %w", err)
	}
	r.state = committed
	return o, nil
}

func (r *Recording) commit(seen Stats) (Observation, error) {
	if r.diskErr != nil {
		return Observation{}, r.diskErr
	}
	if err := r.flushAll(); err != nil {
		return Observation{}, err
	}
	o := newObservation(r.id, r.provenance, r.created)
	o.File = dataName(r.provenance.Tool, r.created, r.id, seen.Ext)
	o.Bytes, o.Dropped = r.flushed, r.dropped
	if r.capErr != nil && r.dropped > 0 {
		o.Cause = content.ClipEnd(r.capErr.Error(), 200)
	}
	o.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	o.Stats = seen.bounded()
	side, err := o.encode(maxSidecar)
	if err != nil {
		return Observation{}, err
	}
	lines := r.index.finish()
	if err := r.closeFile(); err != nil {
		return Observation{}, err
	}
	used := r.s.files.now()
	if err := r.renameIntoPlace(o.File, lines, side, used); err != nil {
		return Observation{}, err
	}
	r.s.quota.endReservation(r.key, r.provenance.Owner, r.flushed+int64(len(lines)+len(side)))
	r.reserved = 0
	// The sidecar may have truncated fields: return what was stored.
	if back, err := decode(side, r.id); err == nil {
		o = back
	}
	o.Used = used.Round(0)
	return o, nil
}

// flushAll writes the bytes still in memory: all of them or none.
func (r *Recording) flushAll() error {
	if r.file == nil {
		r.small = r.buf
	}
	if err := r.createFile(); err != nil {
		return err
	}
	all := int64(len(r.buf))
	if r.reserveRoom(all, 0) < all || r.reserved < r.roomNeeded(all) {
		return r.Err()
	}
	if r.flushed+all == 0 && r.dropped > 0 { // an empty observation would claim there was no output
		return r.Err()
	}
	r.flush(r.buf, 0)
	if r.diskErr != nil {
		return r.diskErr
	}
	r.buf = nil
	return nil
}

// closeFile syncs and closes the data file. It runs before the first rename, so that an error leaves nothing behind.
func (r *Recording) closeFile() error {
	var err error
	if r.s.files.fsync {
		err = r.file.Sync()
	}
	err = cmp.Or(err, r.file.Close())
	r.file = nil
	return err
}

// renameIntoPlace renames the three files into place. If a step fails it undoes the earlier ones as far as the disk
// permits; Discard tries again.
func (r *Recording) renameIntoPlace(data string, lines, side []byte, used time.Time) error {
	disk := r.s.files.disk
	data = storefs.ObservationsDir + "/" + data
	tmp := storefs.TmpDir + "/" + r.key
	steps := []func() error{
		func() error { return r.s.files.writeTmp(tmp+indexExt, lines, time.Time{}) },
		// Before the first rename: a sweep must find the ID in tmp/ until the last one.
		func() error { return r.s.files.writeTmp(tmp+sideExt, side, used) },
		func() error {
			err := disk.Rename(r.name, data)
			if err == nil {
				r.name = data
			}
			return err
		},
		func() error { return disk.Rename(tmp+indexExt, r.id.file(indexExt)) },
		func() error { return r.s.files.syncNames() },
		func() error { return disk.Rename(tmp+sideExt, r.id.file(sideExt)) },
		func() error { return r.s.files.syncNames() },
	}
	for _, step := range steps {
		err := step()
		if err == nil {
			continue
		}
		_ = r.undoCommit()
		if r.name == data && disk.Rename(data, tmp+dataExt) == nil {
			r.name = tmp + dataExt
		}
		return err
	}
	return nil
}

// undoCommit removes all files of a commit except the data. The sidecar is removed first: without it the observation
// does not exist.
func (r *Recording) undoCommit() error {
	tmp := storefs.TmpDir + "/" + r.key
	var err error
	for _, name := range []string{r.id.file(sideExt), r.id.file(indexExt), tmp + sideExt, tmp + indexExt} {
		err = cmp.Or(err, r.s.files.disk.Remove(name))
	}
	return err
}
