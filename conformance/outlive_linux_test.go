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
func left(pids []int) (took time.Duration, n int) {
	begun := time.Now()
	waitFor(patience, func() bool { return !slices.ContainsFunc(pids, alive) })
	took = time.Since(begun)
	for _, pid := range pids {
		if alive(pid) {
			n++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return took, n
}

// ending is one way in which a call ends while its worker works.
type ending struct {
	name string
	// run makes a call on a server of its own and ends it. It gives all processes there were, which are to be gone.
	run func(t testing.TB, root string, call map[string]any) (pids []int, err error)
}

// atWork makes a call, waits until its worker works, and gives all processes below the server. A call that came to
// its own end before its worker was seen at work is made again: one that takes all its memory does so within a
// second, which a machine that is busy with others may let go by between two looks.
func atWork(
	s *stdioClient, server int, call map[string]any, limit time.Duration,
) (answer pending, pids []int, err error) {
	for begun := time.Now(); ; {
		answer = s.beginCall("jq", call)
		err = awaitWork(limit, func() []int { return below(server) }, answer.answered)
		if err == nil {
			return answer, below(server), nil
		}
		if !answer.answered() || time.Since(begun) > limit {
			return answer, nil, err
		}
	}
}

var endings = []ending{
	{"timeout", func(t testing.TB, root string, call map[string]any) ([]int, error) {
		for deadline := 500 * time.Millisecond; ; deadline *= 8 { // on a busy machine a worker may not start that soon
			s := serveStdio(t, root, "--call-timeout", deadline.String(), "--max-observation", "1MiB")
			answer, pids, missing := atWork(s, s.pid(), call, deadline)
			if _, err := answer.wait(); err != nil {
				return nil, err
			}
			if missing == nil || deadline > 10*time.Second {
				return append(pids, s.children()...), missing
			}
		}
	}},
	{"cancel", func(t testing.TB, root string, call map[string]any) ([]int, error) {
		s := serveStdio(t, root, "--max-observation", "1MiB")
		answer, pids, err := atWork(s, s.pid(), call, starts)
		if err != nil {
			return nil, err
		}
		answer.cancel()
		return pids, nil
	}},
	{"client killed", func(t testing.TB, root string, call map[string]any) ([]int, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(
			exe, binary(t), "--root", root, "--min-free", "0", "--max-observation", "1MiB",
		) //nolint:noctx // killed here
		cmd.Env = append(environment(t), roleKey+"=client")
		s := connect(t, cmd, launch{})
		var server int // which that client tells, but not before its server answers
		if !waitFor(starts, func() bool {
			said, _, whole := strings.Cut(s.log.String(), "\n")
			server, err = strconv.Atoi(said)
			return whole && err == nil
		}) {
			return nil, fmt.Errorf("the client did not say which process its server is: %q", s.log.String())
		}
		_, pids, err := atWork(s, server, call, starts)
		if err != nil {
			return nil, err
		}
		return append(pids, server), cmd.Process.Kill()
	}},
	{"server killed", func(t testing.TB, root string, call map[string]any) ([]int, error) {
		s := serveStdio(t, root, "--max-observation", "1MiB")
		_, pids, err := atWork(s, s.pid(), call, starts)
		if err != nil {
			return nil, err
		}
		return pids, s.cmd.Process.Kill()
	}},
	{"server killed, while a worker waits for its next job", func(t testing.TB, root string, _ map[string]any) ([]int, error) {
		s := serveStdio(t, root)
		if _, err := s.call("jq", map[string]any{"source": "null.json", "filter": "[limit(3; repeat(1))]"}); err != nil {
			return nil, err
		}
		var pids []int
		if !waitFor(starts, func() bool { pids = s.children(); return len(pids) > 0 }) {
			return nil, errors.New("no worker waits for the next job")
		}
		return pids, s.cmd.Process.Kill()
	}},
}

func TestS9NoProcessOutlivesItsCall(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "null.json"), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	sparse(t, filepath.Join(root, "line.txt"), 8<<30, strings.Repeat("begin ", 20_000))
	sparse(t, filepath.Join(root, "utf16.txt"), 8<<30, "\xff\xfe"+strings.Repeat("a\x00\n\x00", 40_000))
	times := promise.Size(1, 25) // each starts a server
	calls := maps.Clone(lasting)
	if testing.Short() && !promise.Full() {
		maps.DeleteFunc(calls, func(name string, _ map[string]any) bool {
			return name != "spins" &&
				name != "is deaf in a built-in"
		})
	}
	var mu sync.Mutex
	var took []time.Duration
	cases, failures := 0, 0
	t.Run("all", func(t *testing.T) {
		for way, e := range endings {
			for at, name := range slices.Sorted(maps.Keys(calls)) {
				call := calls[name]
				if strings.Contains(e.name, "waits") {
					if name != "spins" { // what it did before makes no difference
						continue
					}
				} else if !promise.Full() && (way+at)%3 != 0 { // each call ends in one way, or two
					continue
				}
				t.Run(e.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					for range times {
						pids, err := e.run(t, root, call)
						if err != nil {
							t.Fatal(err)
						}
						d, n := left(pids)
						mu.Lock()
						cases++
						took = append(took, d)
						if n > 0 {
							failures++
						}
						mu.Unlock()
						if n > 0 {
							t.Errorf("%d of %d processes are left after %s", n, len(pids), patience)
						}
					}
				})
			}
		}
	})
	late := 0
	for _, d := range took {
		if d > time.Second {
			late++
		}
	}
	slices.Sort(took)
	figures := fmt.Sprintf("%d shapes, %d ways to end; after 1 s %d had processes left", len(calls), len(endings), late)
	if len(took) > 0 {
		figures += fmt.Sprintf(", the last was gone after %s", took[len(took)-1].Round(time.Millisecond))
	}
	promise.Kept(t, promise.Proof{
		Promise:  "S9",
		Cases:    cases,
		Failures: failures,
		Control:  orphans(t, root),
		Figures:  figures,
	})
}

// orphans is the control: a worker that is not tied to its server survives when the server is killed.
func orphans(t *testing.T, root string) (n int) {
	s := launch{program: untied.binary(t), flags: []string{"--root", root}}.stdio(t)
	_, pids, err := atWork(s, s.pid(), lasting["spins"], starts)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // what is promised; here it is not kept
	for _, pid := range pids {
		if alive(pid) {
			n++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	return n
}
