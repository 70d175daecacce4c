package files

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// Files in tmp/ are named by the process that works on them: <pid>-<random>_<id>.<kind>, beside <pid>-<random>.live,
// which that process keeps locked. A process is dead if its lock can be taken. The pid is for people only: the system
// reuses pids.

const (
	liveExt = ".live"
	dataExt = ".data" // the bytes of a recording
	goneExt = ".gone" // marks an observation that is being replaced by a tombstone

	// Extensions of the files beside a data file.
	sideExt  = ".json"
	indexExt = ".lines"
	pinExt   = ".pin"
)

func newProcess() string {
	return strconv.Itoa(os.Getpid()) + "-" + string(backend.RandomID())[:8]
}

// key names the files in tmp/ of one process for one observation, and its reservation.
func key(proc string, id backend.ID) string { return proc + "_" + string(id) }

func parseKey(k string) (proc string, id backend.ID, ok bool) {
	proc, rest, ok := strings.Cut(k, "_")
	return proc, backend.ID(rest), ok && isProcess(proc) && backend.ID(rest).Valid()
}

func isProcess(s string) bool {
	pid, random, ok := strings.Cut(s, "-")
	return ok && pid != "" && len(pid) <= 20 && strings.Trim(pid, "0123456789") == "" && backend.ID("0000"+random).Valid()
}

// census records which processes are alive. It keeps the live files of dead ones locked until the sweep ends, so that
// two sweepers don't do the same work.
type census struct {
	disk  *storefs.FS
	alive map[string]bool
	dead  map[string]*storefs.File // live files, locked; nil: the process has none any more
}

func (d *files) newCensus() *census {
	return &census{disk: d.disk, alive: map[string]bool{d.processName(): true}, dead: map[string]*storefs.File{}}
}

func (c *census) isAlive(proc string) bool {
	if c.alive[proc] {
		return true
	}
	if _, ok := c.dead[proc]; ok {
		return false
	}
	f, err := c.disk.Open(storefs.TmpDir+"/"+proc+liveExt, false)
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
			_ = c.disk.Remove(f.Name)
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
