//go:build unix

package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

// The tests below start this test binary again, as a server or as the parent of one.
const (
	roleKey  = "SERVER_TEST_ROLE"
	asServer = "server"
	asParent = "parent"

	weakKey     = "SERVER_TEST_WEAK" // what the server of a control goes without
	unwatched   = "watch"            // for the client's end
	stdioShared = "stdio"            // taken for the protocol alone
)

func TestMain(m *testing.M) {
	// Under nohup SIGHUP is ignored, and children inherit that: taken here, they start without.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	switch os.Getenv(roleKey) {
	case asServer:
		os.Exit(serverMain())
	case asParent:
		os.Exit(parentMain())
	}
	if ran, code := worker.Main(os.Args, jq.Workers()); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// serverMain serves on stdio as the program does. What it prints must not reach its client.
func serverMain() int {
	in, out := os.Stdin, os.Stdout
	if os.Getenv(weakKey) != stdioShared {
		var err error
		if in, out, err = Take(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	life := Lifetime{Parent: true, Out: out}
	if os.Getenv(weakKey) == unwatched {
		life = Lifetime{}
	}
	ctx, stop := life.Context(context.Background())
	defer stop()
	fmt.Println("a stray print")
	stray := exec.CommandContext(ctx, "sh", "-c", "echo a stray child; cat")
	if stray.Stdout = os.Stdout; in != os.Stdin { // else it would take the requests
		stray.Stdin = os.Stdin
	}
	if err := stray.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	s, err := makeTestServer(withAskTools)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "ready")
	if err := Serve(ctx, s, in, out); err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "ended:", context.Cause(ctx))
	return 0
}

// parentMain starts a server on its own stdio, says its process id on stderr, and waits for ever.
func parentMain() int {
	server := exec.CommandContext(context.Background(), os.Args[0])
	server.Env = append(os.Environ(), roleKey+"="+asServer)
	server.Stdin, server.Stdout, server.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.Sleep(time.Hour) // select {} alone is a deadlock to a runtime without cgo
	return 0
}

// process is a child in one of the roles.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	lines  *bufio.Reader
	errors chan string // lines of stderr; closed at its end, which all who hold it must reach
}

func startProcess(t *testing.T, role, weak string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(context.Background(), os.Args[0]), errors: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), roleKey+"="+role, weakKey+"="+weak)
	outR, outW, err := os.Pipe()
	expect.Must(t, err)
	errR, errW, err := os.Pipe()
	expect.Must(t, err)
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	expect.Must(t, p.cmd.Start())
	_ = outW.Close()
	_ = errW.Close()
	p.out, p.lines = outR, bufio.NewReader(outR)
	go func() {
		defer close(p.errors)
		for lines := bufio.NewScanner(errR); lines.Scan(); {
			p.errors <- lines.Text()
		}
		_ = errR.Close()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		_ = p.in.Close()
		_ = outR.Close()
	})
	p.await("ready")
	return p
}

// await reads stderr up to a line that begins so.
func (p *process) await(line string) string {
	p.t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case got, ok := <-p.errors:
			if !ok {
				p.t.Fatalf("no %q on stderr before its end", line)
			}
			if strings.HasPrefix(got, line) {
				return got
			}
		case <-limit:
			p.t.Fatalf("no %q on stderr in time", line)
		}
	}
}

// gone waits until nobody holds stderr any more, and says how long that took; ok is false where that is more than
// limit.
func (p *process) gone(limit time.Duration) (took time.Duration, ok bool) {
	p.t.Helper()
	start, late := time.Now(), time.After(limit)
	for {
		select {
		case _, more := <-p.errors:
			if !more {
				return time.Since(start), true
			}
		case <-late:
			return limit, false
		}
	}
}

func (p *process) write(lines ...string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, strings.Join(lines, "\n")+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) read() string {
	p.t.Helper()
	line, err := p.lines.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		p.t.Fatal(err)
	}
	return line
}

// Whatever this process, its libraries and its children print, and whatever its tools do: standard output has
// messages only.
func TestS11NothingElseOnStdout(t *testing.T) {
	strays := func(weak string) (messages, strays int) {
		p := startProcess(t, asServer, weak)
		p.write(servertest.Initialize, servertest.ToolCall("1", "say", `{"text":"x"}`, ""), servertest.ToolCall("2", "panic", `{}`, ""), servertest.ToolCall("3", "fail", `{}`, ""), "no message", `{"jsonrpc":"2.0","id":4,"method":"none"}`,
			servertest.ToolCall("5", "big", `{"kb":200}`, ""), servertest.ToolCall("6", "steps", `{"n":50}`, `,"_meta":{"progressToken":"p"}`))
		_ = p.in.Close()
		for line := p.read(); line != ""; line = p.read() {
			messages++
			var m struct {
				Version string `json:"jsonrpc"`
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" {
				strays++
				if weak == "" {
					t.Errorf("on stdout: %q", line)
				}
			}
		}
		expect.OK(t, p.cmd.Wait())
		return messages, strays
	}
	messages, failures := strays("")
	if messages < 8 {
		t.Errorf("%d messages, want 8 or more", messages)
	}
	_, control := strays(stdioShared)
	promise.Kept(t, promise.Proof{Promise: "S11", Cases: messages, Failures: failures, Control: control})
}

// slowest is how long the end of a process may take: the second that is promised, at full size. The server's own
// waits come to 750 ms at most, so that a quarter of it is left to the machine, which runs a dozen of these at once;
// in every run, on machines however slow and beside the tests of other packages, it may take more.
func slowest() time.Duration { return promise.Size(5*time.Second, time.Second) }

// workload is what a server does when its client goes: nothing, calls that stop when told to, or one more that does
// not.
type workload string

const (
	atRest workload = "idle"
	atWork workload = "busy"
	deafly workload = "busy and deaf"
)

// The server ends within a second of its client's end, whichever way that is learned, and never from idling.
func TestS10TheServerEndsWithItsClient(t *testing.T) {
	ways := map[string]func(p *process) error{
		"end of input, nobody reads": func(p *process) error { return errors.Join(p.in.Close(), p.out.Close()) },
		// the input stays open, and nothing is written
		"closed stdout": func(p *process) error { return p.out.Close() },
		"full stdout, end of input": func(p *process) error {
			for i := range 600 { // fewer bytes than a pipe holds, more in their answers
				p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"prompts/list"}`, i))
			}
			return p.in.Close()
		},
		// input and output stay open: this process holds them
		"killed parent": func(p *process) error { return p.cmd.Process.Kill() },
		"terminated":    func(p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) },
		"interrupted":   func(p *process) error { return p.cmd.Process.Signal(syscall.SIGINT) },
		"hang-up":       func(p *process) error { return p.cmd.Process.Signal(syscall.SIGHUP) },
		"end of input":  func(p *process) error { return p.in.Close() }, // calls under way would be waited for
	}
	var mu sync.Mutex
	var took []time.Duration
	failures, control := 0, 0
	start := func(t *testing.T, way, weak string, work workload) *process {
		role := asServer
		if way == "killed parent" {
			role = asParent // ready is said by the server below it
		}
		p := startProcess(t, role, weak)
		p.write(servertest.Initialize)
		p.read()
		if work != atRest {
			p.write(
				servertest.ToolCall("1", "sleep", fmt.Sprintf(`{"ms":60000,"deaf":%t}`, work == deafly), ""),
				servertest.ToolCall("2", "sleep", `{"ms":60000}`, ""), `{"jsonrpc":"2.0","id":3,"method":"ping"}`,
			)
			p.read()
		}
		return p
	}
	t.Run("each", func(t *testing.T) {
		for way, end := range ways {
			for _, work := range []workload{atRest, atWork, deafly} {
				if work != atRest && way == "end of input" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s", way, work), func(t *testing.T) {
					t.Parallel()
					p := start(t, way, "", work)
					expect.Must(t, end(p))
					d, ok := p.gone(slowest())
					mu.Lock()
					defer mu.Unlock()
					took = append(took, d)
					if !ok {
						failures++
						t.Errorf("it is there after %s", d)
					}
				})
			}
		}
		t.Run("idle", func(t *testing.T) {
			t.Parallel()
			p := start(t, "", "", atRest)
			idling := promise.Size(3*time.Second, 10*time.Minute)
			_, gone := p.gone(idling)
			p.write(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
			mu.Lock()
			defer mu.Unlock()
			if gone || !strings.Contains(p.read(), `"id":4`) {
				failures++
				t.Errorf("it ended from idling for %s", idling)
			}
		})
		// The control: a server that does not watch for its client's end.
		for _, way := range []string{"closed stdout", "killed parent"} {
			t.Run("unwatched, "+way, func(t *testing.T) {
				t.Parallel()
				p := start(t, way, unwatched, atRest)
				expect.Must(t, ways[way](p))
				if _, ok := p.gone(2 * time.Second); !ok {
					mu.Lock()
					defer mu.Unlock()
					control++
				}
			})
		}
	})
	slices.Sort(took)
	promise.Keptf(t, promise.Proof{Promise: "S10", Cases: len(took) + 1, Failures: failures, Control: control},
		"p50 %s, p99 %s to the end; %s idle", took[len(took)/2].Round(time.Millisecond),
		took[len(took)*99/100].Round(time.Millisecond), promise.Size(3*time.Second, 10*time.Minute))
}

// A signal is a clean end, which says its cause.
func TestSignalsAreTheCause(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := startProcess(t, asServer, "")
			expect.Must(t, p.cmd.Process.Signal(sig))
			expect.Contains(t, p.await("ended:"), sig.String())
			expect.OK(t, p.cmd.Wait(), "end")
		})
	}
}

// flood is a client that has asked so much, without reading, that neither side can go on.
type flood struct {
	in      *os.File
	answers *bufio.Scanner
	written chan int   // how many requests, once all are written or either end is closed
	ends    chan error // of Serve
}

const floodSize = 100_000

func startFlood(t *testing.T, serverIn, in *os.File) *flood {
	t.Helper()
	outR, outW, err := os.Pipe()
	expect.Must(t, err)
	f := &flood{in: in, answers: bufio.NewScanner(outR), written: make(chan int, 1), ends: make(chan error, 1)}
	s := newTestServer(t)
	go func() {
		err := Serve(t.Context(), s, serverIn, outW)
		_ = serverIn.Close()
		_ = outW.Close()
		f.ends <- err
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = outR.Close()
	})
	var n atomic.Int64
	go func() {
		for n.Load() < floodSize {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", n.Load()); err != nil {
				break
			}
			n.Add(1)
		}
		f.written <- int(n.Load())
	}()
	for last := int64(-1); n.Load() != last; time.Sleep(goneAfter + 5*jsonrpc.StallPollInterval) {
		last = n.Load()
	}
	return f
}

func TestFloodThatEnds(t *testing.T) {
	for name, open := range map[string]func() (server, client *os.File, err error){"pipe": os.Pipe, "socket": socketPair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serverIn, in, err := open()
			expect.Must(t, err)
			f := startFlood(t, serverIn, in)
			if name == "socket" { // which can be closed for writing alone
				raw, err := f.in.SyscallConn()
				if err == nil {
					err = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_WR) })
				}
				expect.Must(t, err)
			} else {
				_ = f.in.Close()
			}
			select {
			case err := <-f.ends:
				expect.ErrorIs(t, err, jsonrpc.ErrStalled)
			case <-time.After(5 * time.Minute):
				t.Fatal("not ended in time")
			}
			if n := <-f.written; n == floodSize {
				t.Error("the flood was taken whole: nothing was full")
			}
		})
	}
}

// TestFloodThatWaits is the control: a client that only makes a pause longer than goneAfter gets every answer.
func TestFloodThatWaits(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() (server, client *os.File, err error){"pipe": os.Pipe, "socket": socketPair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serverIn, in, err := open()
			expect.Must(t, err)
			f := startFlood(t, serverIn, in)
			for i := range floodSize {
				if !f.answers.Scan() {
					t.Fatalf("%d of %d answers: %v", i, floodSize, f.answers.Err())
				}
			}
			_ = f.in.Close()
			expect.OK(t, <-f.ends)
		})
	}
}

// socketPair stands in for a pipe, as some clients' runtimes have it.
func socketPair() (server, client *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range fds {
		if err := syscall.SetNonblock(fd, true); err != nil {
			return nil, nil, err
		}
	}
	return os.NewFile(uintptr(fds[0]), "server"), os.NewFile(uintptr(fds[1]), "client"), nil
}

func TestForcedEnd(t *testing.T) {
	codes := make(chan int, 1)
	ctx, stop := Lifetime{Force: 50 * time.Millisecond, Exit: func(code int) { codes <- code }}.Context(t.Context())
	defer stop()
	expect.Must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	servertest.Within(t, "the context", ctx.Done())
	var sig *SignalError
	if cause := context.Cause(ctx); !errors.As(cause, &sig) || sig.Signal != syscall.SIGHUP {
		t.Errorf("the cause is %v", cause)
	}
	select {
	case code := <-codes:
		expect.Equal(t, code, 1, "exit code")
	case <-time.After(5 * time.Minute):
		t.Error("never forced")
	}
}

// TestRepeatedSignals has a signal come twice at once, as from a terminal and a launcher, and again later.
func TestRepeatedSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, stopped, codes := make(chan os.Signal, 2), make(chan struct{}), make(chan int, 1)
		ctx, end := context.WithCancelCause(t.Context())
		go Lifetime{Force: time.Minute, Exit: func(code int) { codes <- code }}.watch(signals, stopped, end)
		signals <- syscall.SIGINT
		signals <- syscall.SIGINT
		synctest.Wait()
		expect.Equal(t, ctx.Err(), context.Canceled)
		expect.Equal(t, len(codes), 0, "exits after the same signal")
		time.Sleep(repeated)
		signals <- syscall.SIGINT
		synctest.Wait()
		expect.Equal(t, len(codes), 1, "exits after a second one")
	})
}

func TestLifetimeStops(t *testing.T) {
	ctx, stop := Lifetime{Parent: true, Out: os.Stderr, Exit: func(int) { t.Error("forced") }}.Context(t.Context())
	select {
	case <-ctx.Done():
		t.Errorf("ended by itself: %v", context.Cause(ctx))
	case <-time.After(3 * pollInterval):
	}
	stop()
	stop()
	servertest.Within(t, "the context", ctx.Done())
}
