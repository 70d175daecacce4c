// Package files keeps observations in a directory, which several processes share.
//
// The files of a store:
//
//	observations/<tool>_<YYYYMMDDTHHMMSS>_<id>.<ext>   the bytes, as the tool wrote them
//	observations/<id>.json                             the sidecar; its mtime is the last use
//	observations/<id>.lines                            newlines and runes per 64 KiB; rebuilt if missing
//	observations/<id>.pin                              exempts it from age and quota
//	tmp/<process>.live                                 locked while that process is alive
//	tmp/<process>_<id>.{data,lines,json,gone}          what that process is writing or removing
//	state/quota.json                                   the bytes each writer reserved, under a file lock
//
// An observation exists once its sidecar is renamed into place, the last step of a commit. The files that a dead
// process left in tmp/ and its reservations in the quota file name the IDs it was working on, so a sweep finds its
// leftovers without scanning the whole store.
//
// With [Options.Fsync] the three files are synced before they are renamed, and their directory before and after the
// sidecar is renamed, so a power loss leaves an acknowledged observation whole. Removals and pins are synced as well.
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Options bound a store.
type Options = backend.Options

// Store is a directory of observations, a [backend.Backend]. It is safe for concurrent use, also by several processes.
type Store struct {
	Directory
	unwritable error // why the store is open for reading only; nil if it is writable
	listing    listing
}

// Directory is what a store has because it is a directory.
type Directory struct {
	files     *files
	quota     *quota
	elsewhere bool // another backend keeps the observations: Find and SavedTo find nothing
}

// For returns the directory for a store on b, of which s is the cache unless it is b itself.
func (s *Store) For(b backend.Backend) Directory {
	return Directory{s.files, s.quota, b != backend.Backend(s)}
}

// Disk returns the file operations of the store. Its Fault makes them fail, for tests of packages that use a store.
func (d Directory) Disk() *storefs.FS { return d.files.disk }

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

// Open creates missing directories (0700), refuses a directory of another user or writable by the group, and
// sweeps the leftovers of dead processes. An existing store that is read-only or full is opened for reading: see
// [Store.Unwritable]. If it cannot be read either, the error says what to do.
func Open(o Options) (*Store, error) { return openStore(o, &storefs.FS{}) }

// openStore is Open with a file system that tests prepare to fail.
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
	if err := s.checkUse(); err != nil {
		disk.Close()
		return nil, &OpenError{dir, err}
	}
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

func (s *Store) Unwritable() error { return s.unwritable }

func newStore(dir string, disk *storefs.FS, o Options) *Store {
	o = o.Limits()
	d := &files{dir: dir, disk: disk, fsync: o.Fsync, now: o.Now, proc: newProcess()}
	q := &quota{
		files: d, limit: o.Quota, minFree: o.MinFree, maxAge: o.MaxAge, owners: owners{limit: o.OwnerQuota},
		ahead: o.Ahead(), cache: o.Cache,
	}
	return &Store{Directory: Directory{files: d, quota: q}}
}

// Dir returns the absolute directory.
func (d Directory) Dir() string { return d.files.dir }

// Find returns the ID in the path of a data file, as a receipt's `saved to` names it. It opens no file.
func (d Directory) Find(path string) (backend.ID, bool) {
	if d.elsewhere || !filepath.IsAbs(path) || len(path) > 4096 {
		return "", false
	}
	dir, name := filepath.Split(filepath.Clean(path))
	if filepath.Clean(dir) != filepath.Join(d.files.dir, storefs.ObservationsDir) {
		return "", false
	}
	return backend.ParseDataName(name)
}

// SavedTo returns the absolute path of the data file, for people and for receipts on stdio.
func (d Directory) SavedTo(o backend.Observation) string {
	if d.elsewhere || o.File == "" {
		return ""
	}
	return filepath.Join(d.files.dir, storefs.ObservationsDir, filepath.Base(o.File))
}

// Close closes the store. Writers and blobs must be closed before. If Close is never called, the next process
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
