package child

import (
	"sync"
	"time"
)

// KeepSpare makes this process keep one worker waiting for its next job: started, confined, and holding
// nothing. Most of what a worker costs is its start. There is none before a first worker has
// ended well, and none after one that was killed; one that had nothing to do for idle is ended. 0 keeps none, which is
// where a process begins. A waiting worker ends with this process, however that ends.
func KeepSpare(idle time.Duration) {
	waiting.mu.Lock()
	waiting.idle = idle
	waiting.mu.Unlock()
	if idle <= 0 {
		if p := waiting.take(); p != nil {
			p.discard()
		}
	}
}

// waiting is the worker that waits.
var waiting spare

type spare struct {
	mu       sync.Mutex
	idle     time.Duration // 0: none is kept
	p        *process      // nil: there is none
	end      *time.Timer   // of p
	starting bool
}

// take is the waiting worker, nil where there is none that lives.
func (s *spare) take() *process {
	s.mu.Lock()
	p := s.p
	s.p = nil
	if p != nil {
		s.end.Stop()
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		p.close()
		return nil
	default:
		return p
	}
}

// refill starts the next one, where one is to be kept and there is none.
func (s *spare) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle <= 0 || s.p != nil || s.starting {
		return
	}
	s.starting = true
	go func() {
		p, err := start(isolate())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.starting = false
		switch {
		case err != nil: // the next job finds out why
		case s.idle <= 0:
			go p.discard()
		default:
			s.p = p
			s.end = time.AfterFunc(s.idle, func() { s.expire(p) })
		}
	}()
}

// expire ends a worker that was not needed.
func (s *spare) expire(p *process) {
	s.mu.Lock()
	mine := s.p == p
	if mine {
		s.p = nil
	}
	s.mu.Unlock()
	if mine {
		p.discard()
	}
}
