// Package lru is a least recently used cache, bounded by the size of its values: compiled patterns and filters that the
// next page needs again.
//
// It is no store: nothing outlives the process, any value may be missing, and values must not change.
package lru

import (
	"container/list"
	"sync"
)

// Values is the cache. Safe for concurrent use.
type Values[K comparable, V any] struct {
	maxSize int

	mu    sync.Mutex
	size  int
	byKey map[K]*list.Element // of *entry[K, V]
	order list.List           // most recently used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache for values of maxSize in all, in the unit that Put uses.
func New[K comparable, V any](most int) *Values[K, V] {
	return &Values[K, V]{maxSize: most, byKey: map[K]*list.Element{}}
}

// Get returns the value of a key, if cached.
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

// Put caches a value in place of the old one of its key, and evicts the least recently used. A value larger than the
// whole cache is not cached.
func (v *Values[K, V]) Put(key K, value V, weight int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.byKey[key]; at != nil {
		v.remove(at)
	}
	if weight > v.maxSize {
		return
	}
	v.byKey[key] = v.order.PushFront(&entry[K, V]{key, value, weight})
	for v.size += weight; v.size > v.maxSize; {
		v.remove(v.order.Back())
	}
}

func (v *Values[K, V]) remove(at *list.Element) {
	e := v.order.Remove(at).(*entry[K, V])
	delete(v.byKey, e.key)
	v.size -= e.size
}
