package usage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
)

// Limits of the directory. Each file takes one block of the disk, so all of them take about 8 MiB.
const (
	maxFiles = 1_000               // of accounts, and as many of calls
	maxAge   = 30 * 24 * time.Hour // since the last change
	maxFile  = 64 << 10            // bytes
	lockWait = time.Second         // a longer wait is errBusy
)

const (
	accountExt = ".json"
	joinExt    = ".call"
	lockName   = "lock"
	tmpName    = "tmp"
)

var errBusy = errors.New("another process had the accounts locked for over a second; try again")

// Accounts are the accounts of one store. Each is a small file, so that the server and a client's hook, which are two
// processes, share it. They are safe for concurrent use, also by several processes.
type Accounts struct {
	dir string
	now func() time.Time
	mu  sync.Mutex // lets one goroutine at a time wait for the file lock
}

// OpenAccounts returns the accounts of a store, which lie in its directory accounts/. Nothing is opened or created until
// the first change.
func OpenAccounts(store string) *Accounts {
	return &Accounts{dir: filepath.Join(store, "accounts"), now: time.Now}
}

func accountName(owner, session string) string { return hash("session", owner, session) + accountExt }

func joinName(owner, toolUseID string) string { return hash("call", owner, toolUseID) + joinExt }

// hash names a file. Owners and sessions come from clients, so they never become part of a name themselves.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s,", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Read returns the account of a session; a zero Account if there is none.
func (s *Accounts) Read(owner, session string) (a Account, err error) {
	err = s.open(func(root *os.Root) (err error) {
		a, _, err = load[Account](root, accountName(owner, session))
		return err
	})
	return a, err
}

// Update changes the account of a session under the lock of the directory. change must be short: other processes wait.
func (s *Accounts) Update(owner, session string, change func(*Account)) error {
	name := accountName(owner, session)
	return s.locked(func(root *os.Root) error {
		a, _, err := load[Account](root, name)
		if err != nil {
			return err
		}
		change(&a)
		a.Updated = s.now().UTC()
		return s.save(root, name, a)
	})
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
	return s.locked(func(root *os.Root) error {
		return s.save(root, joinName(owner, toolUseID), join{session, agent})
	})
}

// Lookup returns what Join remembered; ok is false for an unknown id.
func (s *Accounts) Lookup(owner, toolUseID string) (session, agent string, ok bool) {
	var j join
	err := s.open(func(root *os.Root) (err error) {
		j, ok, err = load[join](root, joinName(owner, toolUseID))
		return err
	})
	return j.Session, j.Agent, ok && err == nil
}

// open runs do with the directory, unless it is missing.
func (s *Accounts) open(do func(root *os.Root) error) error {
	root, err := osfile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer func() { _ = root.Close() }()
		err = do(root)
	}
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	return nil
}

// locked runs do under the lock of the directory, for which it waits up to a second. It makes the directory if it is
// missing.
func (s *Accounts) locked(do func(root *os.Root) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The store's directory must exist: it has its marker before any other file, which hides it from tools.
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("account: %w", err)
	}
	return s.open(func(root *os.Root) error {
		f, err := osfile.LockIn(root, lockName, lockWait)
		if errors.Is(err, osfile.ErrBusy) {
			return errBusy
		}
		if err != nil {
			return err
		}
		defer func() {
			osfile.Unlock(f)
			_ = f.Close()
		}()
		return do(root)
	})
}

// load reads a file. A missing, torn or overlong file counts as not found: the account starts empty, as for a new
// session.
func load[T any](root *os.Root, name string) (v T, found bool, err error) {
	b, err := osfile.ReadIn(root, name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, osfile.ErrNotRegular), errors.Is(err, osfile.ErrTooLong):
		return v, false, nil
	case err != nil:
		return v, false, err
	}
	var whole T
	if json.Unmarshal(b, &whole) != nil {
		return v, false, nil
	}
	return whole, true, nil
}

// save writes a file by rename. The lock is held, so that there is only one temporary file.
func (s *Accounts) save(root *os.Root, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		s.prune(root, filepath.Ext(name))
	}
	return osfile.ReplaceIn(root, name, tmpName, b)
}

// List returns all accounts, those that changed last first.
func (s *Accounts) List() (all []Account, err error) {
	err = s.open(func(root *os.Root) error {
		names, err := ownNames(root)
		for _, name := range names {
			if a, found, err := load[Account](root, name); filepath.Ext(name) == accountExt && found && err == nil {
				all = append(all, a)
			}
		}
		return err
	})
	slices.SortFunc(all, func(a, b Account) int { return b.Updated.Compare(a.Updated) })
	return all, err
}

// file is a name of the directory and when it last changed.
type file struct {
	name string
	at   time.Time
}

// prune removes files that did not change for 30 days, before a new one is made; and if there are still too many of its
// extension, the oldest quarter of them, so that a full directory is not pruned at each call. It looks at the age of
// files once a day, and ignores names that are not ours.
func (s *Accounts) prune(root *os.Root, ext string) {
	names, err := ownNames(root)
	if err != nil {
		return
	}
	count := 0
	for _, n := range names {
		if strings.HasSuffix(n, ext) {
			count++
		}
	}
	looked, err := root.Lstat(lockName)
	if err != nil || count < maxFiles && s.now().Sub(looked.ModTime()) < 24*time.Hour {
		return
	}
	_ = root.Chtimes(lockName, s.now(), s.now())
	var left []file
	for _, n := range names {
		info, err := root.Lstat(n)
		switch {
		case err != nil:
		case s.now().Sub(info.ModTime()) > maxAge:
			_ = root.Remove(n)
		case strings.HasSuffix(n, ext):
			left = append(left, file{n, info.ModTime()})
		}
	}
	if len(left) < maxFiles {
		return
	}
	slices.SortFunc(left, func(a, b file) int { return a.at.Compare(b.at) })
	for _, f := range left[:len(left)/4] {
		_ = root.Remove(f.name)
	}
}

// ownNames lists the files of accounts and calls.
func ownNames(root *os.Root) ([]string, error) {
	d, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	return slices.DeleteFunc(names, func(n string) bool {
		ext := filepath.Ext(n)
		return ext != accountExt && ext != joinExt
	}), err
}
