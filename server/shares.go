package server

import (
	"fmt"
	"sync"
)

// shares count who holds how much of what all identities have in common, so that none takes it all.
type shares struct {
	all  int // how many there are; 0: as many as the identities' shares add up to
	each int // how many of them one identity may hold

	mu   sync.Mutex
	open int
	held map[string]int
}

// crowd is why one more is not let in.
type crowd struct {
	n   int
	own bool // it is the identity's own
}

// String is how many there are: "3 of this identity".
func (c crowd) String() string {
	if c.own {
		return fmt.Sprintf("%d of this identity", c.n)
	}
	return fmt.Sprintf("%d of all identities", c.n)
}

// enter takes one; nil: it was there to take, and is to be given back by leave.
func (s *shares) enter(owner string) *crowd {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held[owner] >= s.each:
		return &crowd{s.held[owner], true}
	case s.all > 0 && s.open >= s.all:
		return &crowd{s.open, false}
	}
	if s.held == nil {
		s.held = map[string]int{}
	}
	s.held[owner]++
	s.open++
	return nil
}

func (s *shares) leave(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.held[owner]--; s.held[owner] == 0 {
		delete(s.held, owner)
	}
}

func (s *shares) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// allow changes what one identity may hold.
func (s *shares) allow(each int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each = each
}

// shareOf is how many of n one identity may hold where there are others: all but a quarter, so that no
// one of them has to wait for another to be done.
func shareOf(n int) int { return max(n-max(n/4, 1), 1) }
