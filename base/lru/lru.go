// Package lru is a cache that evicts the least recently used values when the sum of their sizes exceeds a limit.
package lru

import (
	"container/list"
	"sync"
)

// Values is the cache. It is safe for concurrent use.
type Values[K comparable, V any] struct {
	maxSize int // maximum sum of the sizes

	mu    sync.Mutex
	size  int                 // sum of the sizes
	byKey map[K]*list.Element // of *entry[K, V]
	order list.List           // most recently used first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache for values with sizes of at most maxSize in all. The unit of a size is up to the caller.
func New[K comparable, V any](maxSize int) *Values[K, V] {
	return &Values[K, V]{maxSize: maxSize, byKey: map[K]*list.Element{}}
}

// Get returns the value of a key. ok is false if the cache does not hold the key.
func (v *Values[K, V]) Get(key K) (value V, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, ok := v.byKey[key]
	if !ok {
		return value, false
	}
	v.order.MoveToFront(at)
	return at.Value.(*entry[K, V]).value, true
}

// Put caches a value, replaces an older value of the key, and evicts the least recently used values. It does not cache
// a value larger than the whole cache.
func (v *Values[K, V]) Put(key K, value V, size int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.byKey[key]; at != nil {
		v.remove(at)
	}
	if size > v.maxSize {
		return
	}
	v.byKey[key] = v.order.PushFront(&entry[K, V]{key, value, size})
	for v.size += size; v.size > v.maxSize; {
		v.remove(v.order.Back())
	}
}

func (v *Values[K, V]) remove(at *list.Element) {
	e := v.order.Remove(at).(*entry[K, V])
	delete(v.byKey, e.key)
	v.size -= e.size
}
