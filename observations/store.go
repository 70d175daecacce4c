package observations

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxObservation = 256 << 20
	DefaultQuota          = 1 << 30
	DefaultMinFree        = 1 << 30
	DefaultMaxAge         = 7 * 24 * time.Hour
)

// Store is a directory of observations. It is safe for concurrent use and
// may be open in several processes.
type Store struct {
	dir  string
	disk *files

	maxObservation int64
	quota          int64
	minFree        int64
	maxAge         time.Duration
	fsync          bool
	now            func() time.Time
	unwritable     error // why it was opened for reading only; nil where it was not

	mu   sync.Mutex
	proc string // this store's name among the processes: <pid>-<random>
	live *file  // tmp/<proc>.live, locked; nil until something is written

	gate chan struct{} // one goroutine at a time in the quota file
	owed struct {      // what could not be told to the quota file yet
		sync.Mutex
		list []settlement
	}
	tidied atomic.Int64 // unix nanoseconds of the next look at ages
}

// DefaultDir is where a store stands by default: $XDG_STATE_HOME/mcp-funnel
// (an absolute path, else it is ignored), else ~/.local/state/mcp-funnel; on
// Windows %LocalAppData%\mcp-funnel.
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
		return "", errors.New("open store: no home directory is known: say where with --store DIR")
	}
	return filepath.Join(home, ".local", "state", "mcp-funnel"), nil
}

// OpenStore makes the directories (0700) where absent, refuses a foreign-owned
// or group-writable one, and sweeps what dead processes left. A store that is
// there and cannot be written to, being read-only or full, is opened for what
// can be read of it: see [Store.Unwritable]. Where nothing can be read either it
// fails: the error says what to do.
func OpenStore(o Options) (*Store, error) { return openStore(o, &files{}) }

// openStore is OpenStore on a disk that is not open yet.
func openStore(o Options, disk *files) (*Store, error) {
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
	if err := disk.enter(dir, o.Fsync); err != nil {
		disk.close()
		return nil, fmt.Errorf("open store %s: %w", clip(dir, 200), err)
	}
	s := newStore(dir, disk, o)
	if s.unwritable = disk.lacks; s.unwritable != nil {
		return s, nil //nolint:nilerr // a store that cannot be written to is read
	}
	switch err := s.start(); {
	case err == nil:
	case isReadOnly(err), isFull(err):
		s.unwritable = err
	default:
		disk.close()
		return nil, fmt.Errorf("open store %s: %w: make it writable, or choose another with --store", clip(dir, 200), err)
	}
	return s, nil
}

// Unwritable says why the store could only be opened for reading: nothing can
// be kept in it, unless what it names (a full disk) has passed. nil where it could be written to.
func (s *Store) Unwritable() error { return s.unwritable }

func newStore(dir string, disk *files, o Options) *Store {
	s := &Store{
		dir: dir, disk: disk, fsync: o.Fsync,
		maxObservation: limit(o.MaxObservation, DefaultMaxObservation),
		quota:          limit(o.Quota, DefaultQuota),
		minFree:        o.MinFree,
		maxAge:         o.MaxAge,
		now:            o.Now,
		proc:           newProcess(),
		gate:           make(chan struct{}, 1),
	}
	switch {
	case o.MinFree == 0:
		s.minFree = DefaultMinFree
	case o.MinFree < 0:
		s.minFree = 0
	}
	switch {
	case o.MaxAge == 0:
		s.maxAge = DefaultMaxAge
	case o.MaxAge < 0:
		s.maxAge = 1<<63 - 1
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// limit takes an option's value, its default for 0, and no limit below.
func limit(n, normal int64) int64 {
	switch {
	case n == 0:
		return normal
	case n < 0:
		return 1 << 62 // sums of it with a file's size do not overflow
	}
	return n
}

// Dir is the store's absolute directory.
func (s *Store) Dir() string { return s.dir }

// Close lets go of the store. Recordings and readers must have ended. Without
// it nothing is lost: the next process sweeps one empty file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.live != nil {
		err = s.disk.remove(s.live.name)
		s.live.release()
		s.live = nil
	}
	s.disk.close()
	return err
}
