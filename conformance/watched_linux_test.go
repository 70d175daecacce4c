package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/remote/remotetest"
)

// What a process that is started may use while nothing is asked of it, and keep after work.
const (
	idleShare  = 0.001   // of a core
	idleGrowth = 2 << 20 // bytes of anonymous memory: what the collector has not taken back yet
	idleSettle = 10 * time.Second
	busyGrowth = 64 << 20 // bytes, from the end of the first third of the work to its end
)

// sample is what one process has used at a moment.
type sample struct {
	at        time.Time
	ticks     int
	anonymous int64 // bytes
	name      string
}

// sampleTree measures a process and its descendants.
func sampleTree(pid int) map[int]sample {
	all := map[int]sample{}
	for _, pid := range append([]int{pid}, below(pid)...) {
		kib, err := statusOf(pid, "RssAnon")
		if err != nil {
			continue // it has ended
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all[pid] = sample{time.Now(), ticks(pid), kib << 10, strings.ReplaceAll(string(line), "\x00", " ")}
	}
	return all
}

// idleFaults returns the processes of a tree that used the processor, or grew, between two samples, and the largest
// share and growth.
func idleFaults(first, last map[int]sample) (faults []string, share float64, growth int64) {
	for pid, b := range last {
		a, found := first[pid]
		if !found {
			faults = append(faults, fmt.Sprintf("%s was started while nothing was asked", b.name))
			continue
		}
		seconds := b.at.Sub(a.at).Seconds()
		// One tick is the grain of what the kernel reports.
		used, grown := max(0, float64(b.ticks-a.ticks-1)/100/seconds), b.anonymous-a.anonymous
		share, growth = max(share, used), max(growth, grown)
		if used > idleShare || grown > idleGrowth {
			faults = append(faults, fmt.Sprintf("%s: %.2f %% of a core, %+d KiB", b.name, used*100, grown>>10))
		}
	}
	return faults, share, growth
}

// busyFaults returns the processes that grew while they worked.
func busyFaults(first, last map[int]sample) (faults []string) {
	for pid, b := range last {
		if a, found := first[pid]; found && b.anonymous-a.anonymous > busyGrowth {
			faults = append(faults, fmt.Sprintf("%s grew by %d MiB at work", b.name, (b.anonymous-a.anonymous)>>20))
		}
	}
	return faults
}

// watched is a server of a kind that lives long, with all that it starts.
type watched struct {
	name string
	pid  int
	work func() error // one round of work
}

// wrapping serves other servers: each is this program again, on the root.
func wrapping(t *testing.T, root string, servers int) watched {
	t.Helper()
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	all := map[string]server{}
	for n := range servers {
		all["s"+strconv.Itoa(n)] = server{binary(t), []string{
			"--root", root, "--store", filepath.Join(t.TempDir(), "store"), "--min-free", "0",
		}}
	}
	text := expect.Value(json.Marshal(map[string]any{"mcpServers": all}))(t)
	config := filepath.Join(t.TempDir(), "servers.json")
	write(t, config, string(text))
	c := launch{flags: []string{"--config", config, "--min-free", "0", "wrap"}}.stdio(t)
	return watched{"wrap", c.pid(), func() error {
		for n := range servers {
			name := fmt.Sprintf("s%d_search", n)
			a, err := c.call(name, object{"pattern": "panic|ERROR"})
			if err == nil && a.failed {
				err = fmt.Errorf("%s: %.200s", name, a.text())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// running has a command that goes on.
func running(t *testing.T, root, command string) watched {
	t.Helper()
	c := serveStdio(
		t, root, "--toolsets", "core,shell", "--sandbox", "best-effort", "--slice", "1s", "--run-timeout", "2h",
	)
	a, err := c.call("run", object{"command": command, "timeout_s": 7200})
	if err != nil || a.failed {
		t.Fatalf("a command that goes on: %v %s", err, a.text())
	}
	return watched{"run", c.pid(), func() error {
		a, err := c.call("run", object{"command": "cat app.log | sort | tail -3"})
		if err == nil && a.failed {
			err = fmt.Errorf("run: %.200s", a.text())
		}
		return err
	}}
}

// overHTTP serves a session over HTTP.
func overHTTP(t *testing.T, root string) watched {
	t.Helper()
	s := serveHTTP(t, "--root", root, "--store", filepath.Join(t.TempDir(), "store"), "--min-free", "0")
	session := s.open(testToken)
	return watched{"http", s.pid(), func() error {
		a, err := session.call("search", object{"pattern": "panic|ERROR"})
		if err == nil && a.failed {
			err = fmt.Errorf("search: %.200s", a.text())
		}
		return err
	}}
}

// onSharedStore serves a session over HTTP, on a database and an object store.
func onSharedStore(t *testing.T, root string) watched {
	t.Helper()
	place := remotetest.New(t)
	s := launch{
		env: append(environment(t), "MCP_FUNNEL_TOKEN="+testToken, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=secret"),
		flags: []string{
			"--root", root, "--store", remotetest.Bucket, "--database", place.Database, "--s3-endpoint", place.S3,
			"--s3-region", "us-east-1", "--cache", t.TempDir(), "--min-free", "0", "--session-key-file", newKey(t),
		},
	}.http(t)
	session := s.open(testToken)
	return watched{"replica", s.pid(), func() error {
		a, err := session.call("search", object{"pattern": "e"}) // over 64 KiB: an object
		if err == nil && (a.failed || !strings.Contains(a.text(), "kept whole as obs:")) {
			err = fmt.Errorf("search: %.200s", a.text())
		}
		return err
	}}
}

// TestS31ReplicaRests watches a replica at work and at rest, where it goes on to tell the database that it lives. The
// control is the replica at work.
func TestS31ReplicaRests(t *testing.T) {
	drivesOnly(t)
	promise.OrdinaryRun(t)
	t.Parallel() // it waits more than it works
	d := soakTime(t, 30*time.Second)
	w := onSharedStore(t, soakRoot(t))
	rounds, faults := worked(w, d/10)
	time.Sleep(idleSettle)
	first := sampleTree(w.pid)
	time.Sleep(d)
	last := sampleTree(w.pid)
	wrong, share, growth := idleFaults(first, last)
	faults = append(faults, wrong...)
	report(t, faults)
	_, more := worked(w, time.Second)
	control, _, _ := idleFaults(last, sampleTree(w.pid))
	report(t, more)
	promise.Keptf(t, promise.Proof{Promise: "S31", Cases: len(last), Failures: len(faults), Control: len(control)},
		"a replica idle for %s after %d rounds of work: %.2f %% of a core and %d KiB more", d, rounds, share*100, growth>>10)
}

// soakTime returns how long to soak: a modest time, 10 minutes under make safety, or what SOAK says.
func soakTime(t *testing.T, modest time.Duration) time.Duration {
	t.Helper()
	d := promise.Size(modest, 10*time.Minute)
	if set := os.Getenv("SOAK"); set != "" {
		d = expect.Value(time.ParseDuration(set))(t, "SOAK")
	}
	return d
}

// TestS31NothingGrows watches each process of servers that live long: a wrapped server, one with a command that goes
// on, and one over HTTP, first at work and then at rest. The control is a command that leaks.
func TestS31NothingGrows(t *testing.T) {
	drivesOnly(t)
	promise.OrdinaryRun(t)
	t.Parallel() // it waits more than it works
	d := soakTime(t, 12*time.Second)
	root := soakRoot(t)
	all := []watched{wrapping(t, root, promise.Size(4, 20)), running(t, root, "sleep 3600"), overHTTP(t, root)}
	busy := map[string]int{}
	var faults []string
	for _, w := range all {
		n, wrong := worked(w, d/10)
		busy[w.name], faults = n, append(faults, wrong...)
	}
	const endless = `a=; while :; do a="$a$(head -c 65536 /dev/zero | tr '\0' x)"; sleep 0.3; done`
	leaking := running(t, root, endless)

	time.Sleep(idleSettle)
	var first []map[int]sample
	for _, w := range append(all, leaking) {
		first = append(first, sampleTree(w.pid))
	}
	time.Sleep(d)
	var share float64
	var growth int64
	cases := 0
	for n, w := range all {
		last := sampleTree(w.pid)
		wrong, s, g := idleFaults(first[n], last)
		for _, fault := range wrong {
			faults = append(faults, w.name+": "+fault)
		}
		if w.name == "run" && !slices.ContainsFunc(slices.Collect(maps.Values(last)), func(s sample) bool {
			return strings.HasPrefix(s.name, "sleep")
		}) {
			faults = append(faults, "the command that goes on has ended")
		}
		cases, share, growth = cases+len(last), max(share, s), max(growth, g)
	}
	report(t, faults)
	control, _, _ := idleFaults(first[len(all)], sampleTree(leaking.pid))
	promise.Kept(t, promise.Proof{Promise: "S31", Cases: cases, Failures: len(faults), Control: len(control),
		Figures: fmt.Sprintf("%d processes idle for %s after rounds of work %v: at most %.2f %% of a core and %d KiB more",
			cases, d, busy, share*100, growth>>10)})
}

// worked has a server work for a time, and returns the rounds and what grew after the first third of them.
func worked(w watched, d time.Duration) (rounds int, faults []string) {
	var warm map[int]sample
	var once sync.Once
	for begun := time.Now(); time.Since(begun) < d || rounds < 3; rounds++ {
		if time.Since(begun) > d/3 && rounds > 0 {
			once.Do(func() { warm = sampleTree(w.pid) })
		}
		if err := w.work(); err != nil {
			return rounds, []string{w.name + ": " + err.Error()}
		}
	}
	return rounds, busyFaults(warm, sampleTree(w.pid))
}
