package files

import (
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// expire replaces an observation by a tombstone, unless it is open or was used since it was listed.
func (l *ledger) expire(e *entry, why string) (ok bool) {
	data, o, err := l.files.lockForExpiry(e)
	if data == nil {
		return false
	}
	defer data.UnlockAndClose()
	l.quota.copies.Delete(e.id)
	if err != nil || l.quota.cache { // a damaged sidecar names no owner and no call: leave no tombstone
		return l.remove(e) == nil
	}
	return l.replaceByTombstone(e, o, why) == nil
}

// remove removes all files of an observation.
func (l *ledger) remove(e *entry) error {
	before := e.size()
	l.markRecount(e.id)
	err := l.files.removeBytes(e)
	if err == nil && e.side {
		if err = l.files.disk.Remove(e.name(sideExt)); err == nil {
			e.side, e.sideSize = false, 0
		}
	}
	l.add(e.owner, e.size()-before)
	return err
}

// replaceByTombstone writes the tombstone, then removes the bytes, so that a reader of any process finds either all of
// the observation or the tombstone. The .gone file makes a sweep finish the removal; it is removed once the ledger is
// written. On a full disk the bytes are removed first.
func (l *ledger) replaceByTombstone(e *entry, o backend.Observation, why string) error {
	if e.err != nil {
		return e.err
	}
	if err := l.files.createLiveFile(); err != nil && !storefs.IsFull(err) {
		return err
	}
	stone, err := o.Tombstone(why, l.files.now()).Encode(backend.MaxTombstone)
	if err != nil {
		return err
	}
	before := e.size()
	l.markRemoval(e.id)
	k := key(l.files.processName(), e.id)
	err = l.files.writeBeside(k, sideExt, stone, l.files.now())
	if err == nil {
		err = l.files.syncNames() // else a power loss could remove the bytes and lose the tombstone
	}
	if err == nil {
		err = l.files.removeBytes(e)
	} else if storefs.IsFull(err) {
		if err = l.files.removeBytes(e); err == nil {
			err = l.files.writeBeside(k, sideExt, stone, l.files.now())
		}
	}
	if err == nil {
		e.sideSize, e.used = int64(len(stone)), l.files.now()
	}
	l.add(o.Owner, e.size()-before)
	return err
}

// markRemoval creates the .gone file of an observation whose bytes are about to be removed. It stays until the ledger
// is written: a sweep that finds the mark of a dead process finishes the removal and counts all files again.
func (l *ledger) markRemoval(id backend.ID) {
	name := storefs.TmpDir + "/" + key(l.files.processName(), id) + goneExt
	if m, err := l.files.disk.Create(name); err == nil {
		_ = m.File.Close()
		l.marks = append(l.marks, name)
	}
}

// markRecount makes a sweep count all files again if the ledger is not written. One mark suffices for several removals.
func (l *ledger) markRecount(id backend.ID) {
	if len(l.marks) == 0 && l.files.createLiveFile() == nil {
		l.markRemoval(id)
	}
}
