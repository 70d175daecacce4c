package worker

import (
	"sync"
	"time"
)

// KeepSpare makes this process keep one spare worker, started, confined and without a job, because starting is most of
// the cost of a worker. A spare is started after a worker has succeeded, never after one has failed. A spare that was
// idle for this long is ended; 0, the default, keeps none. The spare worker always ends with this process.
func KeepSpare(idle time.Duration) {
	spare.mu.Lock()
	spare.idle = idle
	spare.mu.Unlock()
	if idle <= 0 {
		if p := spare.claim(); p != nil {
			p.discard()
		}
	}
}

// spare is the spare worker of this process.
var spare spareWorker

type spareWorker struct {
	mu       sync.Mutex
	idle     time.Duration // how long a spare may be idle; 0 keeps none
	p        *process      // the spare, nil if there is none
	end      *time.Timer   // ends p when it was idle for too long
	starting bool
}

// claim removes and returns the spare worker, nil if there is none or it has ended.
func (s *spareWorker) claim() *process {
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

// refill starts a spare worker if one is wanted and missing.
func (s *spareWorker) refill() {
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
		case err != nil: // the next job will report the error
		case s.idle <= 0:
			go p.discard()
		default:
			s.p = p
			s.end = time.AfterFunc(s.idle, func() { s.expire(p) })
		}
	}()
}

// expire ends a spare worker that was idle for too long.
func (s *spareWorker) expire(p *process) {
	s.mu.Lock()
	unclaimed := s.p == p
	if unclaimed {
		s.p = nil
	}
	s.mu.Unlock()
	if unclaimed {
		p.discard()
	}
}
