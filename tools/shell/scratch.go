package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// scratch is the directory of one owner's commands, for as long as the server runs: their /tmp, home and caches.
type scratch struct {
	path string
	root *tree.Root
	size atomic.Int64 // as last measured
	lock *os.File     // held while the server lives: other servers delete directories whose lock is free
}

// Names of a scratch directory, and of the file beside it that is locked.
const (
	scratchPrefix = "run-"
	lockSuffix    = ".lock"
)

func (d *scratch) tmp() string  { return filepath.Join(d.path, "tmp") }
func (d *scratch) home() string { return filepath.Join(d.path, "home") }

// scratchOf returns the scratch directory of an owner, and makes it if there is none.
func (s *Shell) scratchOf(owner string) (*scratch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.scratch[owner]; d != nil {
		return d, d.make() // a command may have deleted parts of it
	}
	parent := s.options.Dir
	if parent == "" {
		parent = os.TempDir()
	} else if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	parent, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return nil, err
	}
	if s.options.Dir != "" { // files of others have such names, too, in the system's directory
		s.leftover.Do(func() { removeLeftovers(parent) })
	}
	path, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return nil, err
	}
	d := &scratch{path: path}
	if d.lock, err = lockOf(path); err == nil {
		err = d.make()
	}
	if err == nil {
		d.root, err = tree.OpenScratch(path)
	}
	if err != nil {
		d.remove()
		return nil, err
	}
	s.scratch[owner] = d
	return d, nil
}

func (d *scratch) make() error {
	return errors.Join(os.MkdirAll(d.tmp(), 0o700), os.MkdirAll(filepath.Join(d.home(), ".cache"), 0o700))
}

// Root returns the scratch directory of an owner for tools that read; it stays open until [Shell.Close].
func (s *Shell) Root(owner string) (*tree.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.scratch[owner]; d != nil {
		return d.root, nil
	}
	return nil, errors.New("scratch: is empty: it holds what commands of run write to /tmp and to their home")
}

func (d *scratch) remove() {
	if d.root != nil {
		_ = d.root.Close()
	}
	removeAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
		_ = os.Remove(d.path + lockSuffix)
	}
}

// removeAll deletes a directory, also if a command has made directories in it read-only, as Go's module cache is.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // it is about to be deleted
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// removeLeftovers deletes the scratch directories of servers that have ended.
func removeLeftovers(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"+lockSuffix))
	for _, path := range found {
		dir := strings.TrimSuffix(path, lockSuffix)
		if lock, err := lockOf(dir); err == nil {
			removeAll(dir)
			_ = os.Remove(path)
			_ = lock.Close()
		}
	}
}

// lockOf locks the file beside a scratch directory, without waiting.
func lockOf(dir string) (*os.File, error) {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer parent.Close() //nolint:errcheck // it was only read
	return osfile.LockIn(parent, filepath.Base(dir)+lockSuffix, 0)
}
