package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// client is the state that the ways to end a server act on.
type client struct {
	in, out *os.File // its ends of the pipes
	server  *os.Process
	parent  *os.Process // of the server
	pids    []int       // of the server and its worker
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
func startBusy(t *testing.T, program string) client {
	t.Helper()
	inR, in, err := os.Pipe()
	expect.Must(t, err)
	out, outW, err := os.Pipe()
	expect.Must(t, err)
	root := t.TempDir()
	write(t, root+"/ok.json", "{}\n")
	parent := launch{
		program: program,
		wrap:    []string{"sh", "-c", `"$@"; true`, "sh"},
		flags:   []string{"--root", root},
	}.command(t)
	parent.Stdin, parent.Stdout = inR, outW
	expect.Must(t, parent.Start())
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
		expect.Value(io.WriteString(in, m+"\n"))(t)
	}
	own := func() []int { return below(parent.Process.Pid) }
	expect.Must(t, awaitWork(starts, own, func() bool { return false }))
	pids := own()
	t.Cleanup(func() { left(0, pids) })
	first := slices.IndexFunc(pids, func(pid int) bool { _, of := stat(pid); return of == parent.Process.Pid })
	if first < 0 {
		t.Fatalf("of %v none is the server", pids)
	}
	server := expect.Value(os.FindProcess(pids[first]))(t)
	return client{in, out, server, parent.Process, pids}
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
			c := startBusy(t, binary(t))
			expect.Must(t, end(c))
			d, n := left(slowest, c.pids)
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, d); n > 0 {
				failures++
				t.Errorf("%d processes are left after %s", n, d)
			}
		})
	}
	for _, way := range []string{"closed stdout", "killed parent"} {
		t.Run("unwatched, "+way, func(t *testing.T) {
			c := startBusy(t, weak.binary(t))
			expect.Must(t, ways[way](c))
			if _, n := left(2*time.Second, c.pids); n > 0 {
				control++
			}
		})
	}
	slices.Sort(took)
	promise.Keptf(t, promise.Proof{Promise: "S10", Cases: len(took), Failures: failures, Control: control},
		"with a busy worker p50 %s, p99 %s to the end of both", took[len(took)/2].Round(time.Millisecond),
		took[len(took)*99/100].Round(time.Millisecond))
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
				expect.Value(p.wait())(t)
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
	promise.Keptf(t, promise.Proof{Promise: "S11", Cases: cases, Failures: len(strays), Control: len(control)},
		"with libraries and children that print at every file opened")
}
