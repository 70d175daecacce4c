package observations

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Defaults of [Options].
const (
	DefaultMaxObservation = 256 << 20
	DefaultQuota          = 1 << 30
	DefaultMinFree        = 1 << 30
	DefaultMaxAge         = 7 * 24 * time.Hour
)

// Store is a directory of observations. It is safe for concurrent use, also by several processes.
type Store struct {
	files          *files
	quota          *quota
	maxObservation int64
	unwritable     error // why the store is open for reading only; nil if it is writable
	listing        listing
}

// Disk returns the file operations of the store. Its Fault makes them fail, for tests of packages that use a store.
func (s *Store) Disk() *storefs.FS { return s.files.disk }

// DefaultDir returns the default directory: $XDG_STATE_HOME/mcp-funnel if that is an absolute path, else
// ~/.local/state/mcp-funnel; on Windows %LocalAppData%\mcp-funnel.
func DefaultDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-funnel"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "mcp-funnel"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("open store: the home directory is unknown: name a directory with --store DIR")
	}
	return filepath.Join(home, ".local", "state", "mcp-funnel"), nil
}

// OpenStore creates missing directories (0700), refuses a directory of another user or writable by the group, and
// sweeps the leftovers of dead processes. An existing store that is read-only or full is opened for reading: see
// [Store.Unwritable]. If it cannot be read either, the error says what to do.
func OpenStore(o Options) (*Store, error) { return openStore(o, &storefs.FS{}) }

// openStore is OpenStore with a file system that tests prepare to fail.
func openStore(o Options, disk *storefs.FS) (*Store, error) {
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := disk.OpenDirs(dir, o.Fsync); err != nil {
		disk.Close()
		return nil, &OpenError{dir, err}
	}
	s := newStore(dir, disk, o)
	if s.unwritable = disk.Unwritable; s.unwritable != nil {
		return s, nil //nolint:nilerr // the store can still be read
	}
	switch err := s.quota.sweepAtOpen(); {
	case err == nil:
	case storefs.IsReadOnly(err), storefs.IsFull(err):
		s.unwritable = err
	default:
		disk.Close()
		return nil, &OpenError{dir, fmt.Errorf("%w: make it writable, or choose another with --store", err)}
	}
	return s, nil
}

// OpenError is why a store could not be opened.
type OpenError struct {
	Dir string // absolute
	Err error
}

func (e *OpenError) Error() string {
	return "open store " + content.ClipEnd(e.Dir, 200) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpenError) Unwrap() error { return e.Err }

// Unwritable returns why the store is open for reading only, nil if it was writable when opened. Recordings fail until
// the cause, such as a full disk, has passed.
func (s *Store) Unwritable() error { return s.unwritable }

func newStore(dir string, disk *storefs.FS, o Options) *Store {
	d := &files{dir: dir, disk: disk, fsync: o.Fsync, now: o.Now, proc: newProcess()}
	if d.now == nil {
		d.now = time.Now
	}
	q := &quota{
		files:   d,
		limit:   limit(o.Quota, DefaultQuota, unlimited),
		minFree: limit(o.MinFree, DefaultMinFree, 0),
		maxAge:  limit(o.MaxAge, DefaultMaxAge, math.MaxInt64),
		owners:  owners{limit: limit[int64](o.OwnerQuota, unlimited, unlimited)},
	}
	return &Store{files: d, quota: q, maxObservation: limit(o.MaxObservation, DefaultMaxObservation, unlimited)}
}

// unlimited is a number of bytes to which the size of a file can be added.
const unlimited = 1 << 62

// limit returns the default for 0, none for a negative value, else n.
func limit[T int64 | time.Duration](n, normal, none T) T {
	if n < 0 {
		return none
	}
	return cmp.Or(n, normal)
}

// MaxObservation returns how many bytes of one observation are stored; without a limit more than there can be.
func (s *Store) MaxObservation() int64 { return s.maxObservation }

// Dir returns the store's absolute directory.
func (s *Store) Dir() string { return s.files.dir }

// Close closes the store. Recordings and readers must be closed before. If Close is never called, the next process
// sweeps one empty file.
func (s *Store) Close() error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	var err error
	if s.files.live != nil {
		err = s.files.disk.Remove(s.files.live.Name)
		s.files.live.UnlockAndClose()
		s.files.live = nil
	}
	s.files.disk.Close()
	return err
}
