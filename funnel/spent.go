package funnel

import (
	"cmp"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/internal/lru"
	"github.com/mcp-funnel/mcp-funnel/observations"
)

// maxSessions is how many sessions have an account. A further one evicts the least recently used account; its session
// starts from zero again if it comes back.
const maxSessions = 4096

// ledger counts the tokens that each session was shown.
type ledger struct {
	mu       sync.Mutex
	accounts *lru.Values[Session, *account]
}

type account struct {
	deciding sync.Mutex // held while an answer is decided, so that concurrent calls cannot spend the same tokens
	tokens   int
}

func newLedger() *ledger { return &ledger{accounts: lru.New[Session, *account](maxSessions)} }

// spent returns the tokens that a session was shown.
func (l *ledger) spent(who Session) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.accounts.Get(owned(who)); ok {
		return a.tokens
	}
	return 0
}

// begin waits until the answers that were begun before are accounted for, and returns the tokens spent by then. The
// caller must call done once its own answer is accounted for.
func (l *ledger) begin(who Session) (tokens int, done func()) {
	l.mu.Lock()
	a := l.account(who)
	l.mu.Unlock()
	a.deciding.Lock()
	return l.spent(who), a.deciding.Unlock
}

func (l *ledger) add(who Session, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account(who).tokens += tokens
}

// account returns the account of a session, and opens it if there is none. The caller holds l.mu.
func (l *ledger) account(who Session) *account {
	a, ok := l.accounts.Get(owned(who))
	if !ok {
		a = &account{}
		l.accounts.Put(owned(who), a, 1)
	}
	return a
}

func (l *ledger) reset(who Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.accounts.Get(owned(who)); ok {
		l.accounts.Put(owned(who), &account{}, 1)
	}
}

// owned returns the session with the local owner if it has none.
func owned(who Session) Session {
	who.Owner = cmp.Or(who.Owner, observations.Local)
	return who
}
