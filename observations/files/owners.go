package files

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

// owners limit how much of a store each owner may hold. The [ledger] counts the bytes by owner as long as a process
// with such a limit uses the store.
type owners struct {
	limit int64 // bytes of one owner
	learn sync.Once
	of    sync.Map // the owner of each ID, from its sidecar, where it never changes
	full  sync.Map // by owner: until when no room is looked for, since none was found
}

// fullFor keeps an owner over its quota from having every call of its scan the store, while others wait for the lock.
const fullFor = time.Second

func (o *owners) counted() bool { return o.limit < backend.Unlimited }

// learnOwners reads the owners of all observations once: a count that reads them all holds the lock for too long.
func (q *quota) learnOwners() {
	all, _ := q.files.scan(false)
	for _, e := range all {
		q.ownerOf(e)
	}
}

// ownerOf returns the owner of an observation, "" if no valid sidecar names one. ok is false if the disk failed.
func (q *quota) ownerOf(e *entry) (owner string, ok bool) {
	if owner, known := q.owners.of.Load(e.id); known {
		return owner.(string), true
	}
	o, err := q.files.readUnpinned(e.id)
	if err == nil {
		q.owners.of.Store(e.id, o.Owner)
	}
	return o.Owner, err == nil || errors.Is(err, backend.ErrNotFound)
}

// countOwners counts the stored bytes by owner; it ends the count if this process has no limit for them. If the disk
// cannot report all files, no owner gets less than before.
func (l *ledger) countOwners(all map[backend.ID]*entry, holders map[backend.ID]bool) {
	before, q := l.Owners, l.quota
	l.Owners = nil
	if !q.owners.counted() {
		return
	}
	counts, whole := map[string]int64{}, true
	for id, e := range all {
		owner, ok := q.ownerOf(e)
		e.owner, whole = owner, whole && ok && e.err == nil
		if !holders[id] {
			counts[owner] += e.size()
		}
	}
	for owner, n := range before {
		if !whole {
			counts[owner] = max(counts[owner], n)
		}
	}
	l.Owners = counts
	q.owners.of.Range(func(id, _ any) bool {
		if all[id.(backend.ID)] == nil {
			q.owners.of.Delete(id)
		}
		return true
	})
}

// add changes the number of stored bytes.
func (l *ledger) add(owner string, n int64) {
	l.Kept += n
	if l.Owners == nil {
		return
	}
	if l.Owners[owner] += n; l.Owners[owner] <= 0 {
		delete(l.Owners, owner)
	}
}

// hold adds to a reservation.
func (l *ledger) hold(key, owner string, n int64) {
	l.Held[key] += n
	if l.Owners == nil {
		return
	}
	if l.HeldBy == nil {
		l.HeldBy = map[string]string{}
	}
	l.HeldBy[key] = owner
}

// release deletes a reservation.
func (l *ledger) release(key string) {
	delete(l.Held, key)
	delete(l.HeldBy, key)
}

// ownerLeft returns how many bytes an owner may still reserve. A reservation of an unknown owner, after the ledger was
// rebuilt, counts for each: then too little may be stored for a moment, never too much.
func (l *ledger) ownerLeft(owner string) int64 {
	if !l.quota.owners.counted() {
		return backend.Unlimited
	}
	left := l.quota.owners.limit - l.Owners[owner]
	for key, held := range l.Held {
		if of, known := l.HeldBy[key]; !known || of == owner {
			left -= held
		}
	}
	return left
}

// makeOwnRoom expires the least recently used observations of an owner until its quota has room for want bytes, or for
// need bytes after 200 ms; none if all of them would not suffice.
func (l *ledger) makeOwnRoom(owner string, all map[backend.ID]*entry, need, want int64) {
	could := l.ownerLeft(owner)
	if could >= want {
		return
	}
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(_ backend.ID, e *entry) bool { return e.owner != owner })
	for _, e := range l.candidates(own) {
		could += e.size()
	}
	begin := time.Now()
	l.expireWhile(own, func() bool {
		left := l.ownerLeft(owner)
		return could >= need && left < want && (left < need || time.Since(begin) < cleanupSlice)
	})
}

// isFull reports whether the quota of an owner is why there is no room, and none was found a moment ago.
func (l *ledger) isFull(owner string, why error) bool {
	until, found := l.quota.owners.full.Load(owner)
	return found && errors.Is(why, backend.ErrOwnerQuota) && l.files.now().Before(until.(time.Time))
}
