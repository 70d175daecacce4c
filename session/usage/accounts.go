package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/records"
)

var errBusy = errors.New("another process had the accounts locked for over a second; try again")

// Accounts are the accounts among some records, which the server and a client's hook, which are two processes, share.
// They are safe for concurrent use.
type Accounts struct {
	records records.Store
	now     func() time.Time
}

// OpenAccounts returns the accounts among some records.
func OpenAccounts(r records.Store) *Accounts { return &Accounts{records: r, now: time.Now} }

func accountOf(owner, session string) records.Key {
	return records.Key{Kind: records.Account, Owner: owner, Name: records.Hash("session", owner, session)}
}

func callOf(owner, toolUseID string) records.Key {
	return records.Key{Kind: records.Call, Owner: owner, Name: records.Hash("call", owner, toolUseID)}
}

// Read returns the account of a session; a zero Account if there is none.
func (s *Accounts) Read(owner, session string) (Account, error) {
	a, _, err := load[Account](s, accountOf(owner, session))
	return a, err
}

// Update changes the account of a session while no other process changes it. change must be short: the others wait.
func (s *Accounts) Update(owner, session string, change func(*Account)) error {
	err := s.records.Update(accountOf(owner, session), func(old records.Record) ([]byte, error) {
		a, _ := decoded[Account](old.Body)
		change(&a)
		a.Updated = s.now().UTC()
		return json.Marshal(a)
	})
	if errors.Is(err, records.ErrBusy) {
		err = errBusy
	}
	return explain(err)
}

// Report enters a report of a session's client.
func (s *Accounts) Report(owner, session string, u Usage) error {
	return s.Update(owner, session, func(a *Account) { a.Enter(u, s.now()) })
}

// Reset forgets what was reported and shown: the client has compacted or cleared its context.
func (s *Accounts) Reset(owner, session string) error {
	return s.Update(owner, session, func(a *Account) { a.reset(s.now()) })
}

// Forget is Reset for a source that no longer knows the usage, as a status line does after a compaction. It changes
// nothing if the last report is of another source: a status line knows nothing at its start, either, and a hook may.
func (s *Accounts) Forget(owner, session, source string) error {
	if a, err := s.Read(owner, session); err != nil || a.Report == nil || a.Report.Source != source {
		return err
	}
	return s.Update(owner, session, func(a *Account) {
		if a.Report != nil && a.Report.Source == source {
			a.reset(s.now())
		}
	})
}

// join names the session and the agent that made a tool call, as the client's hook reported them.
type join struct {
	Session string `json:"session"`
	Agent   string `json:"agent,omitempty"` // "" for the main conversation
}

// Join remembers which session, and which agent of it, makes a tool call. A client's hook knows all three; the call
// that reaches the server has the id only.
func (s *Accounts) Join(owner, toolUseID, session, agent string) error {
	b, err := json.Marshal(join{session, agent})
	if err == nil {
		err = s.records.Put(callOf(owner, toolUseID), b)
	}
	return explain(err)
}

// Lookup returns what Join remembered; ok is false for an unknown id.
func (s *Accounts) Lookup(owner, toolUseID string) (session, agent string, ok bool) {
	j, ok, err := load[join](s, callOf(owner, toolUseID))
	return j.Session, j.Agent, ok && err == nil
}

// explain says that an error is one of the accounts; nil stays nil.
func explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("account: %w", err)
}

// load reads a record. A missing, torn or overlong one counts as not found: the account starts empty, as for a new
// session.
func load[T any](s *Accounts, k records.Key) (v T, found bool, err error) {
	r, err := s.records.Get(k)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, records.ErrDamaged) {
		return v, false, nil
	}
	v, found = decoded[T](r.Body)
	return v, found, explain(err)
}

func decoded[T any](b []byte) (v T, whole bool) {
	if json.Unmarshal(b, &v) != nil {
		var none T
		return none, false
	}
	return v, true
}

// List returns all accounts, those that changed last first.
func (s *Accounts) List() (all []Account, err error) {
	list, err := s.records.List(records.Key{Kind: records.Account}, "*", true)
	for _, r := range list {
		if a, whole := decoded[Account](r.Body); whole {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Account) int { return b.Updated.Compare(a.Updated) })
	return all, explain(err)
}
