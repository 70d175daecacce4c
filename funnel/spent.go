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
	by    map[Session]account
}

type account struct {
	tokens int
	used   int64 // the clock at its last call
}

func (s *spent) of(who Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[owned(who)].tokens
}

func (s *spent) add(who Session, tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[Session]account{}
	}
	who = owned(who)
	a, ok := s.by[who]
	if !ok && len(s.by) >= maxSessions {
		s.evict()
	}
	s.clock++
	s.by[who] = account{a.tokens + tokens, s.clock}
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
