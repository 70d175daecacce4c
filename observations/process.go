package observations

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// What stands in tmp/ is named by the process that has it under its hands:
// <pid>-<random>_<id>.<what>, beside <pid>-<random>.live, which that process
// keeps locked. The pid is for people: it is used again by the system, a lock
// is not, so a process is dead when its lock can be taken.

const (
	liveExt = ".live"
	dataExt = ".data" // an observation's bytes on their way
	goneExt = ".gone" // this observation is being made a tombstone
)

// The names beside a data file.
const (
	sideExt  = ".json"
	indexExt = ".lines"
	pinExt   = ".pin"
)

func newProcess() string {
	return strconv.Itoa(os.Getpid()) + "-" + randomText(8)
}

// key names one observation in the hands of one process.
func key(proc string, id ID) string { return proc + "_" + string(id) }

func parseKey(k string) (proc string, id ID, ok bool) {
	proc, rest, ok := strings.Cut(k, "_")
	return proc, ID(rest), ok && isProcess(proc) && ID(rest).valid()
}

func isProcess(s string) bool {
	pid, random, ok := strings.Cut(s, "-")
	return ok && len(pid) <= 20 && made(pid, "0123456789") && len(random) == 8 && made(random, alphabet)
}

// announce makes this process's live file, before anything else of it stands in tmp/.
func (s *Store) announce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 5 {
		if s.live != nil {
			return nil
		}
		f, err := s.disk.create(tmpDir + "/" + s.proc + liveExt)
		if err != nil {
			return err
		}
		ok, err := f.hold(true)
		if err != nil {
			_ = s.disk.remove(f.name)
			_ = f.File.Close()
			s.proc = newProcess() // where it could not be removed, its name is taken
			return noLocks(err)
		}
		// A sweeper may have taken the lock, or the file, before us.
		if ok {
			s.live = f
			return nil
		}
		f.release()
		s.proc = newProcess()
	}
	return errors.New("announce process: its file was swept five times")
}

func noLocks(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: this file system has no locks", err)
	}
	return err
}

// process is this store's name among the processes.
func (s *Store) process() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// census says which processes live. Those it found dead stay locked until
// [census.bury], so that two sweepers do not do the same work.
type census struct {
	s     *Store
	alive map[string]bool
	dead  map[string]*file // nil: it has no live file any more
}

func (s *Store) newCensus() *census {
	return &census{s: s, alive: map[string]bool{s.process(): true}, dead: map[string]*file{}}
}

func (c *census) lives(proc string) bool {
	if c.alive[proc] {
		return true
	}
	if _, ok := c.dead[proc]; ok {
		return false
	}
	f, err := c.s.disk.open(tmpDir+"/"+proc+liveExt, false)
	if errors.Is(err, fs.ErrNotExist) {
		c.dead[proc] = nil
		return false
	}
	if err == nil {
		ok, err := f.lock(true)
		if err == nil && ok {
			c.dead[proc] = f
			return false
		}
		f.release()
	}
	c.alive[proc] = true // in doubt nothing is taken from it
	return true
}

// bury removes the live files of the dead: the last thing of a sweep.
func (c *census) bury() {
	for _, f := range c.dead {
		if f != nil {
			_ = c.s.disk.remove(f.name)
		}
	}
	c.close()
}

// close leaves the dead where they are.
func (c *census) close() {
	for _, f := range c.dead {
		if f != nil {
			f.release()
		}
	}
	c.dead = nil
}
