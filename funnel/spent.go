package funnel

import (
	"sync"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// maxSessions is how many sessions have an account. Then the session whose last call is longest ago is forgotten, and
// starts from zero if it comes back.
const maxSessions = 4096

// ledger is what each session was shown, in tokens.
type ledger struct {
	mu       sync.Mutex
	clock    int64
	accounts map[Session]*account
}

type account struct {
	deciding sync.Mutex // held while an answer is decided: concurrent calls would each spend what is left
	tokens   int
	used     int64 // the clock at its last call
}

// spent returns the tokens that a session was shown.
func (l *ledger) spent(who Session) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.accounts[owned(who)]; a != nil {
		return a.tokens
	}
	return 0
}

// begin waits until the answers before this one are accounted for, and returns what is spent then. done must be called
// when this one is.
func (l *ledger) begin(who Session) (tokens int, done func()) {
	l.mu.Lock()
	a := l.account(owned(who))
	l.mu.Unlock()
	a.deciding.Lock()
	return l.spent(who), a.deciding.Unlock
}

func (l *ledger) add(who Session, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account(owned(who)).tokens += tokens
}

// account returns the account of a session, and opens it if there is none. The caller holds l.mu.
func (l *ledger) account(who Session) *account {
	a := l.accounts[who]
	if a == nil {
		if l.accounts == nil {
			l.accounts = map[Session]*account{}
		}
		if len(l.accounts) >= maxSessions {
			l.evict()
		}
		a = &account{}
		l.accounts[who] = a
	}
	l.clock++
	a.used = l.clock
	return a
}

func (l *ledger) evict() {
	var oldest Session
	least := l.clock + 1
	for who, a := range l.accounts {
		if a.used < least {
			oldest, least = who, a.used
		}
	}
	delete(l.accounts, oldest)
}

func (l *ledger) reset(who Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.accounts, owned(who))
}

// owned names the local owner if there is no other.
func owned(who Session) Session {
	if who.Owner == "" {
		who.Owner = observations.Local
	}
	return who
}
