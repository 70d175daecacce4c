package conformance

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// lasting has calls whose worker runs longer than any wait of these tests.
var lasting = map[string]map[string]any{
	"spins":                  {"source": "null.json", "filter": "until(false; .)"},
	"takes memory":           {"source": "null.json", "filter": "[range(1e12)]"},
	"writes":                 {"source": "null.json", "filter": `repeat("a row that goes on and on")`, "save": true},
	"counts a full page":     {"source": "null.json", "filter": "repeat(1)", "limit": 1},
	"is deaf in a built-in":  {"source": "null.json", "filter": `("a" * 20000000) | gsub("a"; "b")`},
	"is deaf in a pattern":   {"source": "null.json", "filter": `("a" * 3000000) | [match("a.*b|a"; "g")] | length`},
	"recurses":               {"source": "null.json", "filter": `def f: 1 + f; f`},
	"reads a file":           {"source": "line.txt", "filter": "select(false)", "text": true, "slurp": true},
	"reads a text in UTF-16": {"source": "utf16.txt", "filter": "select(false)", "text": true},
}

// patience is the time after which a process that still runs counts as left behind. The promise is one second on an
// idle machine.
const patience = promise.HangAfter

// starts is the time limit for the start of a worker; a fast start is not required.
const starts = 5 * time.Minute

// left waits until processes have ended. It returns the time, and the number of those that did not end, which it kills.
func left(limit time.Duration, pids []int) (took time.Duration, n int) {
	begun := time.Now()
	waitFor(limit, func() bool { return !slices.ContainsFunc(pids, alive) })
	took = time.Since(begun)
	for _, pid := range pids {
		if alive(pid) {
			n++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return took, n
}

// Ways in which a call ends.
const (
	byTimeout      = "timeout"
	byCancel       = "cancel"
	byClientKilled = "client killed"
	byServerKilled = "server killed"
)

var endings = []string{byTimeout, byCancel, byClientKilled, byServerKilled}

// doomed is a server whose call ends in one of the ways. Below a client that is killed it is a process of that one.
type doomed struct {
	*stdioClient
	way    string
	server int
}

func startDoomed(t testing.TB, way, root string, flags ...string) (doomed, error) {
	if way != byClientKilled {
		s := serveStdio(t, root, flags...)
		return doomed{s, way, s.pid()}, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return doomed{}, err
	}
	cmd := exec.Command(exe, append([]string{binary(t), "--root", root, "--min-free", "0"}, flags...)...)
	cmd.Env = append(environment(t), roleKey+"=client")
	s := connect(t, cmd, launch{})
	said, whole := "", false // by that client, but not before its server answers
	waitFor(starts, func() bool { said, whole = s.log.after(""); return whole })
	server, err := strconv.Atoi(said)
	if err != nil {
		return doomed{}, fmt.Errorf("the client did not say which process its server is: %q", s.log.String())
	}
	t.Cleanup(func() { waitFor(patience, func() bool { return !alive(server) }) }) // until then it writes in the directory
	return doomed{s, way, server}, nil
}

// end ends a call in the way.
func (d doomed) end(answer pending) error {
	switch d.way {
	case byTimeout:
		_, err := answer.wait()
		return err
	case byCancel:
		answer.cancel()
		return nil
	}
	return d.cmd.Process.Kill()
}

// atWork makes a call, waits until its worker works, and gives all processes below the server. A call that came to
// its own end before its worker was seen at work is made again: one that takes all its memory does so within a
// second, which a machine that is busy with others may let go by between two looks.
func (d doomed) atWork(call map[string]any, limit time.Duration) (answer pending, pids []int, err error) {
	for begun := time.Now(); ; {
		answer = d.beginCall("jq", call)
		err = awaitWork(limit, func() []int { return below(d.server) }, answer.answered)
		if err == nil {
			return answer, below(d.server), nil
		}
		if !answer.answered() || time.Since(begun) > limit {
			return answer, nil, err
		}
	}
}

// endWork makes a call on a server of its own and ends it. It gives all processes there were, which are to be gone.
func endWork(t testing.TB, way, root string, call map[string]any) ([]int, error) {
	for deadline := 500 * time.Millisecond; ; deadline *= 8 { // on a busy machine a worker may not start that soon
		flags, limit := []string{"--max-observation", "1MiB"}, starts
		if way == byTimeout {
			flags, limit = append(flags, "--call-timeout", deadline.String()), deadline
		}
		d, err := startDoomed(t, way, root, flags...)
		if err != nil {
			return nil, err
		}
		answer, pids, missing := d.atWork(call, limit)
		if missing != nil && (way != byTimeout || deadline > 10*time.Second) {
			return nil, missing
		}
		if err := d.end(answer); err != nil {
			return nil, err
		}
		switch {
		case missing != nil:
			continue
		case way == byTimeout:
			pids = append(pids, d.children()...)
		case way == byClientKilled:
			pids = append(pids, d.server)
		}
		return pids, nil
	}
}

// killWaiting kills a server while a worker waits for its next job.
func killWaiting(t testing.TB, root string) ([]int, error) {
	s := serveStdio(t, root)
	if _, err := s.call("jq", map[string]any{"source": "null.json", "filter": "[limit(3; repeat(1))]"}); err != nil {
		return nil, err
	}
	var pids []int
	if !waitFor(starts, func() bool { pids = s.children(); return len(pids) > 0 }) {
		return nil, errors.New("no worker waits for the next job")
	}
	return pids, s.cmd.Process.Kill()
}

// outlived tries each shape with each way to end it, and returns how long the processes took to end. At modest size it
// tries one combination in so many; each shape is in.
func outlived(
	t *testing.T, shapes []string, oneIn int,
	try func(t *testing.T, way, shape string) (took time.Duration, left int, err error),
) (all []time.Duration, failures, late int) {
	var mu sync.Mutex
	t.Run("all", func(t *testing.T) {
		for n, way := range endings {
			for at, shape := range shapes {
				if !promise.Full() && (n+at)%oneIn != 0 {
					continue
				}
				t.Run(way+"/"+shape, func(t *testing.T) {
					t.Parallel()
					for range promise.Size(1, 25) { // each starts a server
						took, n, err := try(t, way, shape)
						expect.Must(t, err)
						mu.Lock()
						all = append(all, took)
						if took > time.Second {
							late++
						}
						if n > 0 {
							failures++
							t.Errorf("%d processes are left after %s", n, took)
						}
						mu.Unlock()
					}
				})
			}
		}
	})
	return all, failures, late
}

func TestS9NoProcessOutlivesItsCall(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "null.json"), "null")
	sparse(t, filepath.Join(root, "line.txt"), 8<<30, strings.Repeat("begin ", 20_000))
	sparse(t, filepath.Join(root, "utf16.txt"), 8<<30, "\xff\xfe"+strings.Repeat("a\x00\n\x00", 40_000))
	const waits = "waits for its next job"
	shapes := append(slices.Sorted(maps.Keys(lasting)), waits)
	if testing.Short() && !promise.Full() {
		shapes = []string{"spins", "is deaf in a built-in"}
	}
	took, failures, late := outlived(t, shapes, 3, func(t *testing.T, way, shape string) (time.Duration, int, error) {
		var pids []int
		var err error
		switch {
		case shape != waits:
			pids, err = endWork(t, way, root, lasting[shape])
		case way != byServerKilled:
			t.Skip("there is no call that ends")
		default:
			pids, err = killWaiting(t, root)
		}
		if err != nil {
			return 0, 0, err
		}
		d, n := left(patience, pids)
		return d, n, nil
	})
	promise.Keptf(t, promise.Proof{Promise: "S9", Cases: len(took), Failures: failures, Control: orphans(t, root)},
		"%d shapes, %d ways to end; after 1 s %d had processes left, the last was gone after %s", len(shapes), len(endings),
		late, slices.Max(append(took, 0)).Round(time.Millisecond))
}

// orphans is the control: a worker that is not tied to its server survives when the server is killed.
func orphans(t *testing.T, root string) (n int) {
	s := launch{program: untied.binary(t), flags: []string{"--root", root}}.stdio(t)
	_, pids, err := doomed{s, byServerKilled, s.pid()}.atWork(lasting["spins"], starts)
	expect.Must(t, err)
	expect.Must(t, s.cmd.Process.Kill())
	time.Sleep(time.Second) // what is promised; here it is not kept
	_, n = left(0, pids)
	return n
}
