package shell

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Prefix begins the handle of a command.
const Prefix = "run:"

// idleTimeout is how long a command, or the rest of its output, waits for the next call.
const idleTimeout = 30 * time.Minute

// maxEnded is how many commands that ended are remembered.
const maxEnded = 1000

// detach makes a job that is held wait for later calls, and returns its handle.
func (s *Shell) detach(j *job) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.handle == "" {
		j.handle = Prefix + string(observations.RandomID())
		if s.options.Replica != "" {
			j.handle += "@" + s.options.Replica
		}
	}
	if s.closed {
		j.kill(endedServer)
	}
	j.free = time.Now().Add(idleTimeout)
	j.release()
	return j.handle
}

// claim returns, and holds, the job of a handle. Handles of others read like unknown ones.
func (s *Shell) claim(owner, handle string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, replica, _ := strings.Cut(strings.TrimSpace(handle), "@")
	if handle = strings.ToLower(id); replica != "" {
		handle += "@" + replica
	}
	if !strings.HasPrefix(handle, Prefix) {
		handle = Prefix + handle
	}
	at := slices.IndexFunc(s.running[owner], func(j *job) bool { return j.handle == handle })
	if e, ok := s.ended[handle]; at < 0 && ok && e.owner == owner {
		return nil, fmt.Errorf("%s has ended with exit code %d%s", handle, e.exit, e.where)
	}
	if at < 0 && s.options.Replica != "" && replica != s.options.Replica && replica != "" {
		return nil, fmt.Errorf("after: %s runs on replica %s, and this is %s: a command cannot move; try the call again, it may "+
			"reach %[2]s; if that has ended, run command=… again", content.ClipBytes(handle, 160), replica, s.options.Replica)
	}
	if at < 0 {
		return nil, fmt.Errorf(
			"after: no command is running as %s: it has ended and was answered, waited over %s, or the server was restarted; "+
				"run command=… starts one",
			content.ClipBytes(handle, 60),
			shortTime(idleTimeout),
		)
	}
	j := s.running[owner][at]
	if !j.hold() {
		return nil, fmt.Errorf("after: another call follows %s now: wait for its answer", handle)
	}
	j.free = j.began.Add(j.timeout)
	return j, nil
}

// endedRun is a command that was continued and has ended.
type endedRun struct {
	owner string
	exit  int
	where string // where its output is; "": it was shown and not stored
}

// noteEnded remembers how a command ended, for later calls with its handle. id is that of its stored output, or "".
func (s *Shell) noteEnded(j *job, exit int, id string) {
	if j.handle == "" {
		return
	}
	e := endedRun{owner: j.owner, exit: exit}
	if id != "" {
		e.where = ": its output is " + observations.Prefix + id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= maxEnded {
		clear(s.ended)
	}
	s.ended[j.handle] = e
}

// finish forgets a job that has ended; the caller holds it.
func (s *Shell) finish(j *job) {
	s.releaseGuards(j.view.guarded())
	s.measureCache(j.view.cache)
	s.end(j)
}

// expire ends a command that no call continues.
func (j *job) expire() {
	if !j.hold() {
		return
	}
	j.discard(endedIdle)
}

func shortTime(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "m0s")+"m", "h0m")
}
