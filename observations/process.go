package observations

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Files in tmp/ are named by the process that works on them: <pid>-<random>_<id>.<kind>, beside <pid>-<random>.live,
// which that process keeps locked. A process is dead if its lock can be taken. The pid is for people only: the system
// reuses pids.

const (
	liveExt = ".live"
	dataExt = ".data" // the bytes of a recording
	goneExt = ".gone" // marks an observation that is being replaced by a tombstone
)

// Extensions of the files beside a data file.
const (
	sideExt  = ".json"
	indexExt = ".lines"
	pinExt   = ".pin"
)

func newProcess() string {
	return strconv.Itoa(os.Getpid()) + "-" + randomText(8)
}

// key names the files in tmp/ of one process for one observation, and its reservation.
func key(proc string, id ID) string { return proc + "_" + string(id) }

func parseKey(k string) (proc string, id ID, ok bool) {
	proc, rest, ok := strings.Cut(k, "_")
	return proc, ID(rest), ok && isProcess(proc) && ID(rest).valid()
}

func isProcess(s string) bool {
	pid, random, ok := strings.Cut(s, "-")
	return ok && len(pid) <= 20 && consistsOf(pid, "0123456789") && len(random) == 8 && consistsOf(random, alphabet)
}

// createLiveFile creates and locks this process's live file. It must exist before any other file of the process in
// tmp/.
func (s *Store) createLiveFile() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 5 {
		if s.live != nil {
			return nil
		}
		f, err := s.disk.Create(storefs.TmpDir + "/" + s.proc + liveExt)
		if err != nil {
			return err
		}
		ok, err := f.LockLinked(true)
		if err != nil {
			_ = s.disk.Remove(f.Name)
			_ = f.File.Close()
			s.proc = newProcess() // the old name is still in use if the file could not be removed
			return noLocks(err)
		}
		// ok is false if a sweep of another process locked or removed the file first.
		if ok {
			s.live = f
			return nil
		}
		f.UnlockAndClose()
		s.proc = newProcess()
	}
	return errors.New("create the live file of this process: other processes removed it five times")
}

func noLocks(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: this file system has no locks", err)
	}
	return err
}

// processName returns this store's name among the processes.
func (s *Store) processName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// census records which processes are alive. It keeps the live files of dead ones locked until the sweep ends, so that
// two sweepers don't do the same work.
type census struct {
	s     *Store
	alive map[string]bool
	dead  map[string]*storefs.File // live files, locked; nil: the process has none any more
}

func (s *Store) newCensus() *census {
	return &census{s: s, alive: map[string]bool{s.processName(): true}, dead: map[string]*storefs.File{}}
}

func (c *census) isAlive(proc string) bool {
	if c.alive[proc] {
		return true
	}
	if _, ok := c.dead[proc]; ok {
		return false
	}
	f, err := c.s.disk.Open(storefs.TmpDir+"/"+proc+liveExt, false)
	if errors.Is(err, fs.ErrNotExist) {
		c.dead[proc] = nil
		return false
	}
	if err == nil {
		ok, err := f.TryLock(true)
		if err == nil && ok {
			c.dead[proc] = f
			return false
		}
		f.UnlockAndClose()
	}
	c.alive[proc] = true // in doubt, keep its files
	return true
}

// removeDead removes the live files of dead processes, the last step of a sweep.
func (c *census) removeDead() {
	for _, f := range c.dead {
		if f != nil {
			_ = c.s.disk.Remove(f.Name)
		}
	}
	c.unlockDead()
}

// unlockDead unlocks the live files of dead processes and leaves them for another sweep.
func (c *census) unlockDead() {
	for _, f := range c.dead {
		if f != nil {
			f.UnlockAndClose()
		}
	}
	c.dead = nil
}
