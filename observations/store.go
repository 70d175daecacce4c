package observations

import (
	"errors"
	"fmt"
	"io/fs"
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
// or group-writable one, and sweeps what dead processes left. It fails where
// nothing could be written: the error says what to do.
func OpenStore(o Options) (*Store, error) {
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
	disk, err := openFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", clip(dir, 200), err)
	}
	s := newStore(dir, disk, o)
	if err := s.start(); err != nil {
		disk.close()
		return nil, fmt.Errorf("open store %s: %w: make it writable, or choose another with --store", clip(dir, 200), err)
	}
	return s, nil
}

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
		_ = s.live.File.Close()
		s.live = nil
	}
	s.disk.close()
	return err
}

// openFiles opens the directory of a store and those in it, making what is
// absent, and refuses one that others could change under us.
func openFiles(dir string) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: choose another with --store", wrap("make", "the directory", err))
	}
	if link, err := os.Lstat(dir); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		if uid, known := owner(link); known && uid != os.Geteuid() && uid != 0 {
			return nil, fmt.Errorf("it is a link that user %d made: choose another with --store", uid)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another with --store", wrap("open", "the directory", err))
	}
	f := &files{root: root, dirs: map[string]*os.Root{}}
	if err := f.enter(dir); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *files) enter(dir string) error {
	info, err := f.root.Stat(".")
	if err != nil {
		return wrap("stat", ".", err)
	}
	if err := ours(dir, info); err != nil {
		return err
	}
	if f.self, err = f.root.Open("."); err != nil {
		return wrap("open", ".", err)
	}
	for _, name := range []string{observationsDir, tmpDir, stateDir} {
		path := filepath.Join(dir, name)
		info, err := f.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = f.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w: make it writable, or choose another with --store", wrap("make", name, err))
			}
			info, err = f.root.Lstat(name)
		}
		if err != nil {
			return wrap("open", name, err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory but a %s: move it away, or choose another store with --store",
				path, kindOf(info.Mode()))
		}
		if err := ours(path, info); err != nil {
			return err
		}
		sub, err := f.root.OpenRoot(name)
		if err != nil {
			return wrap("open", name, err)
		}
		f.dirs[name] = sub
		if now, err := sub.Stat("."); err != nil || !os.SameFile(info, now) {
			return wrap("open", name, errChanged)
		}
	}
	return nil
}

// ours refuses a directory that belongs to another user or that others may
// write in: they could plant, swap or read what is kept.
func ours(dir string, info fs.FileInfo) error {
	if uid, known := owner(info); known && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d who runs this: choose another with --store, or chown it",
			clip(dir, 200), uid, os.Geteuid())
	}
	if writable(info) {
		return fmt.Errorf("others may write in %s (mode %04o): run chmod go-w on it, or choose another with --store",
			clip(dir, 200), info.Mode().Perm())
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}
