//go:build amd64 || arm64

package sandbox

import (
	"sync"
	"time"
)

// spareAge is how long a spare init waits for a command.
const spareAge = 5 * time.Minute

// spareSet holds at most one init that was started ahead: starting a Go program and its namespaces takes longer than
// starting a command in it.
type spareSet struct {
	mu    sync.Mutex
	on    bool
	kind  kind
	init  *Process // nil: none
	count int      // of spares so far: tells an old timer from a new one

	filling bool // one is being started
}

var spares spareSet

// KeepSpare makes each Start start one more process, which waits for the next command, for five minutes at most.
// It ends with the returned function, and with this process.
func KeepSpare() (stop func()) {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	spares.on = true
	return func() {
		spares.mu.Lock()
		defer spares.mu.Unlock()
		spares.on = false
		spares.drop()
	}
}

// claim returns a spare of this kind for one command; nil if there is none.
func (s *spareSet) claim(k kind) *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.on {
		return nil
	}
	p := s.init
	if p != nil && s.kind != k {
		s.drop()
		p = nil
	}
	s.init = nil
	return p
}

// fill starts a spare, unless there is one.
func (s *spareSet) fill(k kind) {
	s.mu.Lock()
	wanted := s.on && s.init == nil && !s.filling
	s.filling = s.filling || wanted
	s.mu.Unlock()
	if !wanted {
		return
	}
	p, err := startInit(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filling = false
	if err != nil {
		return // the next command reports it
	}
	if !s.on || s.init != nil {
		p.Kill()
		return
	}
	s.init, s.kind = p, k
	s.count++
	n := s.count
	time.AfterFunc(spareAge, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.count == n {
			s.drop()
		}
	})
}

// drop ends the spare; the caller holds s.mu.
func (s *spareSet) drop() {
	if s.init != nil {
		s.init.Kill()
		s.init = nil
	}
}
