package jsonrpc

import (
	"fmt"
	"sync"
)

// OwnerLimiter limits how many units of a shared resource, such as open streams or bytes of memory, each identity and
// all together may hold. Methods are safe for concurrent use.
type OwnerLimiter struct {
	Total    int // the limit for all identities together; 0: no limit
	PerOwner int // the limit for one identity

	mu      sync.Mutex
	inUse   int
	byOwner map[string]int
}

// LimitError reports the limit that Acquire reached.
type LimitError struct {
	count    int
	PerOwner bool // the limit of one identity was reached, not the total
}

// Error returns the count and its scope, as in "3 of this identity"; the caller builds a sentence around it.
func (c LimitError) Error() string {
	if c.PerOwner {
		return fmt.Sprintf("%d of this identity", c.count)
	}
	return fmt.Sprintf("%d of all identities", c.count)
}

// Acquire counts n units for owner. If it returns nil, the caller must call Release; else a limit would be exceeded.
func (s *OwnerLimiter) Acquire(owner string, n int) *LimitError {
	if n == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byOwner[owner]+n > s.PerOwner:
		return &LimitError{s.byOwner[owner], true}
	case s.Total > 0 && s.inUse+n > s.Total:
		return &LimitError{s.inUse, false}
	}
	if s.byOwner == nil {
		s.byOwner = map[string]int{}
	}
	s.byOwner[owner] += n
	s.inUse += n
	return nil
}

// Release returns n units that Acquire counted.
func (s *OwnerLimiter) Release(owner string, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse -= n
	if s.byOwner[owner] -= n; s.byOwner[owner] == 0 {
		delete(s.byOwner, owner)
	}
}

// Count returns the number of units in use.
func (s *OwnerLimiter) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse
}

// CountOf returns the number of units that an owner uses.
func (s *OwnerLimiter) CountOf(owner string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byOwner[owner]
}

// SetPerOwner changes the limit of one identity. It does not take back units that are in use.
func (s *OwnerLimiter) SetPerOwner(each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.PerOwner = each
}

// OwnerShare returns how many of n units one identity may hold if there are others: n less a quarter, at least 1.
// The quarter, at least 1 unit, stays free, so that no identity waits for another to finish.
func OwnerShare(n int) int { return max(n-max(n/4, 1), 1) }
