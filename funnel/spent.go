package funnel

import (
	"sync"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// maxSessions is how many sessions are accounted for; then the one that was
// longest without a call is forgotten, and begins anew should it come back.
const maxSessions = 4096

// spent is what each session was shown, in tokens.
type spent struct {
	mu    sync.Mutex
	clock int64
	by    map[Session]*account
}

type account struct {
	turn   sync.Mutex // who has it decides what is shown: calls at once would each spend what is left
	tokens int
	used   int64 // the clock at its last call
}

func (s *spent) of(who Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.by[owned(who)]; a != nil {
		return a.tokens
	}
	return 0
}

// turn waits until the answers before this one are accounted for, and says what is spent then. done ends the turn.
func (s *spent) turn(who Session) (tokens int, done func()) {
	s.mu.Lock()
	a := s.account(owned(who))
	s.mu.Unlock()
	a.turn.Lock()
	return s.of(who), a.turn.Unlock
}

func (s *spent) add(who Session, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account(owned(who)).tokens += tokens
}

// account is that of a session, which is there from now on. The caller has s.mu.
func (s *spent) account(who Session) *account {
	a := s.by[who]
	if a == nil {
		if s.by == nil {
			s.by = map[Session]*account{}
		}
		if len(s.by) >= maxSessions {
			s.evict()
		}
		a = &account{}
		s.by[who] = a
	}
	s.clock++
	a.used = s.clock
	return a
}

func (s *spent) evict() {
	var oldest Session
	least := s.clock + 1
	for who, a := range s.by {
		if a.used < least {
			oldest, least = who, a.used
		}
	}
	delete(s.by, oldest)
}

func (s *spent) reset(who Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, owned(who))
}

func owned(who Session) Session {
	if who.Owner == "" {
		who.Owner = observations.Local
	}
	return who
}
