package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// namedProgram is a program with a unique name, so that its processes differ from those of other tests.
type namedProgram struct {
	t    *testing.T
	path string
}

func ownProgram(t *testing.T, path string) namedProgram {
	t.Helper()
	own := filepath.Join(t.TempDir(), filepath.Base(path)) // a variant acts by its name
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, b, 0o755); err != nil {
		t.Fatal(err)
	}
	p := namedProgram{t, own}
	t.Cleanup(func() {
		for _, pid := range p.running() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p
}

// running returns the processes of the program: the server and its workers.
func (p namedProgram) running() (pids []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, d := range all {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if exe, err := os.Readlink("/proc/" + d.Name() + "/exe"); err == nil && exe == p.path {
			pids = append(pids, pid)
		}
	}
	return pids
}

// first returns the process whose parent is not among them: the server. Process numbers do not show this: the system
// reuses small ones.
func (p namedProgram) first() int {
	all := p.running()
	for _, pid := range all {
		if state, parent := stat(pid); state != 0 && !slices.Contains(all, parent) {
			return pid
		}
	}
	p.t.Fatalf("of %v none is the first", all)
	return 0
}

// until waits until the number of processes is n.
func (p namedProgram) until(limit time.Duration, wanted func(n int) bool) (took time.Duration, ok bool) {
	start := time.Now()
	ok = waitFor(limit, func() bool { return wanted(len(p.running())) })
	return time.Since(start), ok
}

// client is the state that the ways to end a server act on.
type client struct {
	in, out *os.File // its ends of the pipes
	server  *os.Process
	parent  *os.Process // of the server
}

// ways are the ways in which a server learns that its client has ended.
var ways = map[string]func(c client) error{
	"end of input, nobody reads": func(c client) error { _ = c.in.Close(); return c.out.Close() },
	"closed stdout":              func(c client) error { return c.out.Close() },
	"full stdout, end of input": func(c client) error {
		for i := range 600 { // fewer bytes than a pipe holds, more in their answers
			if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":"p%d","method":"prompts/list"}`+"\n", i); err != nil {
				return err
			}
		}
		return c.in.Close()
	},
	"killed parent": func(c client) error { return c.parent.Kill() },
	"terminated":    func(c client) error { return c.server.Signal(syscall.SIGTERM) },
	"interrupted":   func(c client) error { return c.server.Signal(syscall.SIGINT) },
	"hang-up":       func(c client) error { return c.server.Signal(syscall.SIGHUP) },
	"killed":        func(c client) error { return c.server.Kill() },
}

// startBusy starts a server below a parent of its own, and a jq program without an end in its worker. It holds the
// pipes itself: how they are closed is what is tried.
func startBusy(t *testing.T, p namedProgram) client {
	t.Helper()
	inR, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write(t, root+"/ok.json", "{}\n")
	parent := launch{
		program: p.path,
		wrap:    []string{"sh", "-c", `"$@"; true`, "sh"},
		flags:   []string{"--root", root},
	}.command(t)
	parent.Stdin, parent.Stdout = inR, outW
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = inR.Close(), outW.Close()
	t.Cleanup(func() {
		_, _ = in.Close(), out.Close()
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jq","arguments":{"source":"ok.json","filter":"def f: f; f"}}}`,
	} {
		if _, err := io.WriteString(in, m+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := p.until(starts, func(n int) bool { return n >= 1 }); !ok {
		t.Fatal("no server was started")
	}
	server, err := os.FindProcess(p.first())
	if err != nil {
		t.Fatal(err)
	}
	if err := awaitWork(starts, func() []int { return below(server.Pid) }, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	return client{in, out, server, parent.Process}
}

// A server with a busy worker ends as fast, and the worker with it.
func TestS10AWorkerEndsWithItsServer(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // ignored under nohup, which children inherit
	// The promise is one second, of which the server's own waits take at most 750 ms. In an ordinary run tests of other
	// packages slow the machine down.
	slowest := promise.Size(promise.HangAfter, time.Second)
	var mu sync.Mutex
	var took []time.Duration
	failures, control := 0, 0
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			p := ownProgram(t, binary(t))
			if err := end(startBusy(t, p)); err != nil {
				t.Fatal(err)
			}
			d, ok := p.until(slowest, func(n int) bool { return n == 0 })
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, d); !ok {
				failures++
				t.Errorf("%d processes are left after %s", len(p.running()), d)
			}
		})
	}
	for _, way := range []string{"closed stdout", "killed parent"} {
		t.Run("unwatched, "+way, func(t *testing.T) {
			p := ownProgram(t, weak.binary(t))
			if err := ways[way](startBusy(t, p)); err != nil {
				t.Fatal(err)
			}
			if _, ok := p.until(2*time.Second, func(n int) bool { return n == 0 }); !ok {
				control++
			}
		})
	}
	slices.Sort(took)
	promise.Kept(t, promise.Proof{
		Promise: "S10", Cases: len(took), Failures: failures, Control: control,
		Figures: fmt.Sprintf(
			"with a busy worker p50 %s, p99 %s to the end of both", took[len(took)/2].Round(time.Millisecond),
			took[len(took)*99/100].Round(time.Millisecond),
		),
	})
}

// Only messages reach standard output, even if tools, workers, libraries or children print.
func TestS11AllToolsSpeakOnlyTheProtocol(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	dir := t.TempDir()
	all, _ := specials(t, dir)
	write(t, dir+"/data.json", `{"a":[1,2,3]}`)
	write(t, dir+"/frames.txt", strings.Repeat(`{"jsonrpc":"2.0","id":7,"result":{}}`+"\n", 100))
	mix := func(program string, all []special) (calls int, strays []string) {
		c := launch{program: program, flags: []string{"--root", dir, "--log-level", "debug"}}.stdio(t)
		var due []pending
		answered := func() { // all of them
			for _, p := range due {
				if _, err := p.wait(); err != nil {
					t.Fatal(err)
				}
			}
			due = nil
		}
		ask := func(method string, params any) {
			if len(due) == 40 { // not more at once than are taken
				answered()
			}
			due = append(due, c.begin(method, params))
			calls++
		}
		tool := func(name string, args map[string]any) {
			ask("tools/call", map[string]any{"name": name, "arguments": args, "_meta": map[string]any{"progressToken": calls}})
		}
		for _, s := range all {
			// which the control waits for
			if slices.Contains([]string{"sparse", "fifo", "to-fifo", "tty", "to-tty", "console"}, s.name) {
				continue
			}
			for what, args := range perTool {
				name, _, _ := strings.Cut(what, " ")
				tool(name, args(s.name))
			}
		}
		for _, filter := range []string{
			".", "debug", "stderr", "halt_error", `"x"|halt_error(1)`, "error", `error("\n{\"jsonrpc\":\"2.0\"}\n")`, "input",
			"1e1000", "[range(1000)]", "reduce range(3000) as $i (0;.+1)", `"\u001b[2J"`, "def f: [f]; f", "@json", "env",
		} {
			answered()
			tool("jq", map[string]any{"source": "data.json", "filter": filter})
		}
		for _, source := range []string{"frames.txt", "data.json"} {
			tool("read", map[string]any{"path": source})
			tool("grep", map[string]any{"source": source, "pattern": ".", "save": true})
		}
		tool("none", nil)
		tool("search", map[string]any{"pattern": "("})
		ask("prompts/list", map[string]any{})
		ask("resources/list", map[string]any{})
		ask("no/such/method", json.RawMessage(`[]`))
		answered()
		return calls, c.strays()
	}
	cases, strays := mix(talkative.binary(t), all)
	for _, s := range strays {
		t.Errorf("on stdout: %.200q", s)
	}
	_, control := mix(weak.binary(t), all[:4])
	promise.Kept(t, promise.Proof{
		Promise:  "S11",
		Cases:    cases,
		Failures: len(strays),
		Control:  len(control),
		Figures:  "with libraries and children that print at every file opened",
	})
}
