package httpserver

import (
	"cmp"
	"container/list"
)

// evictionQueue orders what may be evicted: entries that were never used since they were opened, then the others, each
// time the longest idle first. The caller must hold a lock.
type evictionQueue struct{ fresh, proven list.List }

func (q *evictionQueue) add(v any, proven bool) *list.Element {
	if proven {
		return q.proven.PushBack(v)
	}
	return q.fresh.PushBack(v)
}

// remove removes an entry that add returned; nil, or an entry that was removed before, does nothing.
func (q *evictionQueue) remove(e *list.Element) {
	if e != nil {
		q.fresh.Remove(e) // does nothing on the list that lacks it
		q.proven.Remove(e)
	}
}

// first returns the entry to evict next, or nil.
func (q *evictionQueue) first() *list.Element { return cmp.Or(q.fresh.Front(), q.proven.Front()) }
