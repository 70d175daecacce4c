package funnel

import (
	"cmp"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/lru"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
)

// maxSessions is how many sessions have an account. A further one evicts the least recently used account; its session
// starts from zero again if it comes back.
const maxSessions = 4096

// sessionAccounts knows what the context of each session holds: what its client reported and what it was shown since,
// or only what it was shown.
//
// Reports lie in the store, because another process may write them (mcp-funnel usage). What a session without reports
// was shown is in memory only.
type sessionAccounts struct {
	mu       sync.Mutex
	accounts *lru.Values[Session, *sessionAccount]
	stored   *usage.Accounts // nil: reports are in memory only
}

// sessionAccount is the account of one session.
type sessionAccount struct {
	deciding sync.Mutex // held while an answer is decided, so that concurrent calls cannot spend the same tokens
	usage.Account
}

func newSessionAccounts(stored *usage.Accounts) *sessionAccounts {
	return &sessionAccounts{accounts: lru.New[Session, *sessionAccount](maxSessions), stored: stored}
}

// report records what a client said of its context.
func (l *sessionAccounts) report(who Session, u usage.Usage) error {
	if l.stored != nil {
		who = owned(who)
		return l.stored.Report(who.Owner, who.ID, u)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account(who).Enter(u, time.Now())
	return nil
}

// spent returns what the context of a session holds.
func (l *sessionAccounts) spent(who Session) policy.Spent { return SpentOf(l.read(who)) }

// read returns the account of a session. A stored one goes before the one in memory.
func (l *sessionAccounts) read(who Session) usage.Account {
	who = owned(who)
	if l.stored != nil {
		if a, err := l.stored.Read(who.Owner, who.ID); err == nil && a.Report != nil {
			return a
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.accounts.Get(who); ok {
		return a.Account
	}
	return usage.Account{}
}

// SpentOf returns what the context of a session holds by its account.
func SpentOf(a usage.Account) policy.Spent {
	s := policy.Spent{Tokens: a.Shown, Shown: a.Shown}
	if r := a.Report; r != nil {
		s.Tokens += r.PromptTokens
		s.Source, s.Window, s.Response, s.Model = r.Source, r.Window, r.ResponseTokensReserved, r.Model
	}
	if a.Peak != nil {
		s.Peak = a.Peak.Tokens
	}
	return s
}

// begin waits until all answers that were begun earlier are entered, and then returns the account of the session. The
// caller must call done once its own answer is entered.
func (l *sessionAccounts) begin(who Session) (a usage.Account, done func()) {
	l.mu.Lock()
	held := l.account(who)
	l.mu.Unlock()
	held.deciding.Lock()
	return l.read(who), held.deciding.Unlock
}

// shown is what an answer adds to an account.
type shown struct {
	tokens  int
	notice  bool // that something is not shown
	pointer bool // a receipt of a stored output
}

// add records an answer.
func (l *sessionAccounts) add(who Session, s shown) error {
	change := func(a *usage.Account) {
		a.Show(s.tokens, time.Now())
		if s.notice {
			a.Notices++
		}
		if s.pointer {
			a.Pointers++
		}
	}
	who = owned(who)
	if l.stored != nil {
		if a, err := l.stored.Read(who.Owner, who.ID); err == nil && a.Report != nil {
			return l.stored.Update(who.Owner, who.ID, change)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.account(who).Account)
	return nil
}

// account returns the account of a session, and opens it if there is none. The caller holds l.mu.
func (l *sessionAccounts) account(who Session) *sessionAccount {
	a, ok := l.accounts.Get(owned(who))
	if !ok {
		a = &sessionAccount{}
		l.accounts.Put(owned(who), a, 1)
	}
	return a
}

func (l *sessionAccounts) reset(who Session) {
	who = owned(who)
	if l.stored != nil {
		_ = l.stored.Reset(who.Owner, who.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.accounts.Get(who); ok {
		l.accounts.Put(who, &sessionAccount{}, 1)
	}
}

// owned returns the session with the local owner if it has none.
func owned(who Session) Session {
	who.Owner = cmp.Or(who.Owner, observations.Local)
	return who
}
