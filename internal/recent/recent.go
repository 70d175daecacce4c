// Package recent keeps what was used last, up to a weight: compiled patterns and filters, which the next page of the same
// question wants again.
//
// It is no store: nothing outlives the process, nothing is promised to be there, and what is kept never changes.
package recent

import (
	"container/list"
	"sync"
)

// Values are kept by key. Safe for concurrent use.
type Values[K comparable, V any] struct {
	most int

	mu     sync.Mutex
	weight int
	byKey  map[K]*list.Element // of *entry[K, V]
	order  list.List           // the last used first
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

// New keeps values of that weight in all, in whatever unit Put is told.
func New[K comparable, V any](most int) *Values[K, V] {
	return &Values[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// Get is the value of a key, if it is kept.
func (v *Values[K, V]) Get(key K) (value V, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.byKey[key]
	if at == nil {
		return value, false
	}
	v.order.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Put keeps a value in place of what had its key, and lets go of those that were used longest ago. One that is
// heavier than all may be is not kept.
func (v *Values[K, V]) Put(key K, value V, weight int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.byKey[key]; at != nil {
		v.drop(at)
	}
	if weight > v.most {
		return
	}
	v.byKey[key] = v.order.PushFront(&entry[K, V]{key, value, weight})
	for v.weight += weight; v.weight > v.most; {
		v.drop(v.order.Back())
	}
}

func (v *Values[K, V]) drop(at *list.Element) {
	e := v.order.Remove(at).(*entry[K, V])
	delete(v.byKey, e.key)
	v.weight -= e.weight
}
