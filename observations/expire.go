package observations

import "github.com/mcp-funnel/mcp-funnel/observations/storefs"

// expire replaces an observation by a tombstone, unless it is open or was used since it was listed.
func (l *ledger) expire(e *entry, why string) (freed int64, ok bool) {
	data, o, err := l.files.lockForExpiry(e)
	if data == nil {
		return 0, false
	}
	defer data.UnlockAndClose()
	if err != nil { // a damaged sidecar names no owner and no call: leave no tombstone
		size := e.size()
		l.markRecount(e.id)
		if l.files.removeBytes(e) != nil || l.files.disk.Remove(e.name(sideExt)) != nil {
			return 0, false
		}
		e.side, e.sideSize = false, 0
		return size, true
	}
	freed, err = l.replaceByTombstone(e, o, why)
	return freed, err == nil
}

// replaceByTombstone writes the tombstone, then removes the bytes, so that a reader of any process finds either all of
// the observation or the tombstone. The .gone file makes a sweep finish the removal; it is removed once the ledger is
// written. On a full disk the bytes are removed first.
func (l *ledger) replaceByTombstone(e *entry, o Observation, why string) (freed int64, err error) {
	if e.err != nil {
		return 0, e.err
	}
	if err := l.files.createLiveFile(); err != nil && !storefs.IsFull(err) {
		return 0, err
	}
	stone, err := o.tombstone(why, l.files.now()).encode(maxTombstone)
	if err != nil {
		return 0, err
	}
	before := e.size()
	l.markRemoval(e.id)
	k := key(l.files.processName(), e.id)
	err = l.files.writeBeside(k, sideExt, stone)
	if err == nil {
		err = l.files.syncNames() // else a power loss could remove the bytes and lose the tombstone
	}
	if err == nil {
		err = l.files.removeBytes(e)
	} else if storefs.IsFull(err) {
		if err = l.files.removeBytes(e); err == nil {
			err = l.files.writeBeside(k, sideExt, stone)
		}
	}
	if err == nil {
		e.sideSize, e.used = int64(len(stone)), l.files.now()
	}
	return before - e.size(), err
}

// markRemoval creates the .gone file of an observation whose bytes are about to be removed. It stays until the ledger
// is written: a sweep that finds the mark of a dead process finishes the removal and counts all files again.
func (l *ledger) markRemoval(id ID) {
	name := storefs.TmpDir + "/" + key(l.files.processName(), id) + goneExt
	if m, err := l.files.disk.Create(name); err == nil {
		_ = m.File.Close()
		l.marks = append(l.marks, name)
	}
}

// markRecount makes a sweep count all files again if the ledger is not written. One mark suffices for several removals.
func (l *ledger) markRecount(id ID) {
	if len(l.marks) == 0 && l.files.createLiveFile() == nil {
		l.markRemoval(id)
	}
}
