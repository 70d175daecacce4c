// Package spare keeps one thing ready for its next use, because starting it takes longer than using it.
package spare

import (
	"sync"
	"time"
)

// Spare keeps at most one started thing; none before Keep is called. It is safe for concurrent use.
type Spare[K comparable, T any] struct {
	End func(T) // ends one that is not used

	mu       sync.Mutex
	idle     time.Duration // how long a spare may be idle; 0 keeps none
	value    T
	kind     K
	expiry   *time.Timer // ends an idle value; nil: there is no spare
	starting bool
}

// Keep ends a spare that is idle for longer than this from now on. With 0 it keeps none, and ends the one there is.
func (s *Spare[K, T]) Keep(idle time.Duration) {
	s.mu.Lock()
	s.idle = idle
	if s.expiry != nil && idle > 0 {
		s.expiry.Reset(idle)
	}
	s.mu.Unlock()
	s.endIf(func() bool { return s.idle <= 0 })
}

// Claim removes and returns the spare; ok is false if there is none. It ends a spare of another kind.
func (s *Spare[K, T]) Claim(kind K) (value T, ok bool) {
	s.endIf(func() bool { return s.kind != kind })
	return s.take(func() bool { return s.kind == kind })
}

// Fill starts a spare in a goroutine, unless there is one, one is being started, or none is kept. It ignores an error
// of start, because the next user meets it too.
func (s *Spare[K, T]) Fill(kind K, start func() (T, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle <= 0 || s.expiry != nil || s.starting {
		return
	}
	s.starting = true
	go func() {
		value, err := start()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.starting = false; err != nil {
			return
		}
		if s.idle <= 0 {
			go s.End(value)
			return
		}
		s.value, s.kind = value, kind
		var mine *time.Timer
		mine = time.AfterFunc(s.idle, func() { s.endIf(func() bool { return s.expiry == mine }) })
		s.expiry = mine
	}()
}

// Peek returns the spare without claiming it, and whether one is being started.
func (s *Spare[K, T]) Peek() (value T, ok, starting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.expiry != nil, s.starting
}

// take removes and returns the spare if there is one that is wanted, which is called with mu held.
func (s *Spare[K, T]) take(wanted func() bool) (value T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry == nil || !wanted() {
		return value, false
	}
	s.expiry.Stop()
	value = s.value
	s.value, s.expiry = *new(T), nil
	return value, true
}

// endIf ends the spare if there is one that is unwanted.
func (s *Spare[K, T]) endIf(unwanted func() bool) {
	if value, ok := s.take(unwanted); ok {
		s.End(value)
	}
}
