package account

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

// Accounts are the accounts of one store. They are safe for concurrent use, also by several processes.
type Accounts struct {
	dir string
	now func() time.Time
	mu  sync.Mutex // lets one goroutine at a time wait for the file lock
}

// Open returns the accounts of a store, which lie in its directory accounts/. Nothing is opened or created until the
// first change.
func Open(store string) *Accounts {
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

// locked runs do under the lock of the directory.
func (s *Accounts) locked(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.lock()
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	defer func() {
		osfile.Unlock(f)
		_ = f.Close()
	}()
	return do()
}

// lock waits for the file lock, up to a second. It makes the directory if it is missing.
func (s *Accounts) lock() (*os.File, error) {
	// The store's directory must exist: it has its marker before any other file, which hides it from tools.
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := osfile.OpenDir(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := osfile.LockIn(root, lockName, lockWait)
	if errors.Is(err, osfile.ErrBusy) {
		err = errBusy
	}
	return f, err
}

// load reads a file. A missing, torn or overlong file counts as not found: the account starts empty, as for a new
// session.
func load[T any](s *Accounts, name string) (v T, found bool, err error) {
	root, err := osfile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err != nil {
		return v, false, fmt.Errorf("account: %w", err)
	}
	defer func() { _ = root.Close() }()
	b, err := osfile.ReadIn(root, name, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, osfile.ErrNotRegular), errors.Is(err, osfile.ErrTooLong):
		return v, false, nil
	case err != nil:
		return v, false, fmt.Errorf("account: %w", err)
	}
	var whole T
	if json.Unmarshal(b, &whole) != nil {
		return v, false, nil
	}
	return whole, true, nil
}

// save writes a file by rename. The lock is held, so that there is only one temporary file.
func (s *Accounts) save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	root, err := osfile.OpenDir(s.dir)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	defer func() { _ = root.Close() }()
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		s.prune(root, filepath.Ext(name))
	}
	if err := osfile.ReplaceIn(root, name, tmpName, b); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	return nil
}

// List returns all accounts, those that changed last first.
func (s *Accounts) List() ([]Account, error) {
	root, err := osfile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	defer func() { _ = root.Close() }()
	names, err := ownNames(root)
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	var all []Account
	for _, name := range names {
		if a, found, err := load[Account](s, name); filepath.Ext(name) == accountExt && found && err == nil {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Account) int { return b.Updated.Compare(a.Updated) })
	return all, nil
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
