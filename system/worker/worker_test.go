package worker_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
)

const mib = 1 << 20

var workers = map[string]worker.Worker{
	"echo": func(_ context.Context, in io.Reader, _ []*os.File, out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	},
	"files": func(_ context.Context, _ io.Reader, files []*os.File, out io.Writer) error {
		for _, f := range files {
			if _, err := io.Copy(out, io.NewSectionReader(f, 0, 1<<40)); err != nil {
				return err
			}
		}
		return nil
	},
	"fail":  func(context.Context, io.Reader, []*os.File, io.Writer) error { return errors.New("no luck\ntoday") },
	"panic": func(context.Context, io.Reader, []*os.File, io.Writer) error { panic("broken") },
	"exit":  func(context.Context, io.Reader, []*os.File, io.Writer) error { os.Exit(7); return nil },
	"memory": func(context.Context, io.Reader, []*os.File, io.Writer) error {
		var held [][]byte
		for {
			b := make([]byte, mib)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			held = append(held, b)
			runtime.KeepAlive(held)
		}
	},
	"huge": func(context.Context, io.Reader, []*os.File, io.Writer) error {
		size := min(int64(8<<30), math.MaxInt)
		b := make([]byte, size)
		b[len(b)-1] = 1
		runtime.KeepAlive(b)
		return nil
	},
	"stack": func(context.Context, io.Reader, []*os.File, io.Writer) error {
		_, _ = fmt.Fprint(io.Discard, deep(1))
		return nil
	},
	"spin": func(context.Context, io.Reader, []*os.File, io.Writer) error {
		for { //nolint:staticcheck // it is meant to spin
		}
	},
	"sleep": func(context.Context, io.Reader, []*os.File, io.Writer) error { time.Sleep(time.Hour); return nil },
	"flood": func(_ context.Context, _ io.Reader, _ []*os.File, out io.Writer) error {
		b := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
	},
	"try escape": tryEscape,
	"pid": func(_ context.Context, _ io.Reader, _ []*os.File, out io.Writer) error {
		_, _ = fmt.Fprintln(out, os.Getpid())
		time.Sleep(time.Hour)
		return nil
	},
}

func deep(n int) int {
	if n < 0 {
		return 0
	}
	var pad [256]int
	pad[n%256] = n
	return deep(n+1) + pad[(n+7)%256]
}

// tryEscape tries to access what a worker must not have; each line is one success.
func tryEscape(ctx context.Context, in io.Reader, _ []*os.File, out io.Writer) error {
	path, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GOTRACEBACK=") && !strings.HasPrefix(e, "TZ=") {
			_, _ = fmt.Fprintln(out, "environment:", e)
		}
	}
	if b, err := os.ReadFile(string(path)); err == nil {
		_, _ = fmt.Fprintf(out, "file: %s\n", b)
	}
	if err := os.WriteFile(string(path)+".new", []byte("x"), 0o600); err == nil {
		_, _ = fmt.Fprintln(out, "wrote a file")
	}
	if err := exec.CommandContext(ctx, "/bin/true").Run(); err == nil {
		_, _ = fmt.Fprintln(out, "ran a command")
	}
	if c, err := new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0"); err == nil {
		_, _ = fmt.Fprintln(out, "has a socket")
		_ = c.Close()
	}
	return nil
}

func TestMain(m *testing.M) {
	if os.Getenv("CHILD_TEST_PARENT") != "" && len(os.Args) == 1 { // the program that TestParentKilled kills
		worker.Main(os.Args, nil)
		err := worker.Run(context.Background(), worker.Spec{Name: "pid"}, os.Stdout)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv("CHILD_TEST_FORGOT") != "" && len(os.Args) == 1 { // the program of TestMainForgotten
		fmt.Println(worker.Run(context.Background(), worker.Spec{Name: "echo"}, io.Discard), worker.Layers())
		os.Exit(0)
	}
	os.Exit(workertest.Main(m, workers))
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	text := strings.Repeat("what goes in comes out\n", 100_000)
	var out bytes.Buffer
	expect.Must(t, worker.Run(
		within(t, time.Minute), worker.Spec{Name: "echo", In: strings.NewReader(text)}, &out,
	))
	if out.String() != text {
		t.Errorf("got %d bytes, want %d", out.Len(), len(text))
	}
}

func TestFilesAreReadByPosition(t *testing.T) {
	dir := t.TempDir()
	var files []*os.File
	for i, s := range []string{"one ", "two"} {
		p := filepath.Join(dir, strconv.Itoa(i))
		expect.Must(t, os.WriteFile(p, []byte(s), 0o600))
		f := expect.Value(os.Open(p))(t)
		defer func() { _ = f.Close() }()
		files = append(files, f)
	}
	for range 2 { // the second run finds the files as the first did
		var out bytes.Buffer
		expect.Must(t, worker.Run(within(t, time.Minute), worker.Spec{Name: "files", Files: files}, &out))
		expect.Equal(t, out.String(), "one two")
	}
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name    string
		spec    worker.Spec
		timeout time.Duration
		cause   error
		line    string
	}{
		{"its error", worker.Spec{Name: "fail"}, 0, worker.ErrFailed, "today"},
		{"a panic", worker.Spec{Name: "panic"}, 0, worker.ErrCrashed, "panic: broken"},
		{"an exit code", worker.Spec{Name: "exit"}, 0, worker.ErrCrashed, "exit status 7"},
		{"no such worker", worker.Spec{Name: "nobody"}, 0, worker.ErrFailed, `no worker is called "nobody"`},
		{"little by little over the memory cap", worker.Spec{
			Name: "memory", Memory: 128 * mib,
		}, 0, worker.ErrMemory, "memory"},
		{"at once over the memory cap", worker.Spec{Name: "huge"}, 0, worker.ErrMemory, "memory"},
		{"endless recursion", worker.Spec{Name: "stack"}, 0, worker.ErrMemory, ""},
		{"processor time", worker.Spec{Name: "spin", CPU: time.Second}, 0, worker.ErrCPU, ""},
		{"deadline, working", worker.Spec{Name: "spin"}, 300 * time.Millisecond, context.DeadlineExceeded, ""},
		{"deadline, idle", worker.Spec{Name: "sleep"}, 300 * time.Millisecond, context.DeadlineExceeded, ""},
		{"deadline, writing", worker.Spec{Name: "flood"}, 300 * time.Millisecond, context.DeadlineExceeded, ""},
		{"output cap", worker.Spec{Name: "flood", Output: 1000}, 0, worker.ErrOutput, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.timeout == 0 {
				test.timeout = time.Minute
			}
			var out count
			err := worker.Run(within(t, test.timeout), test.spec, &out)
			if !errors.Is(err, test.cause) {
				t.Fatalf("got %v, want %v", err, test.cause)
			}
			var e *worker.Error
			if !errors.As(err, &e) || !strings.Contains(e.Line, test.line) {
				t.Errorf("got %#v, want a line with %q", err, test.line)
			}
			if len(err.Error()) > 300 {
				t.Errorf("an error of %d bytes: %s", len(err.Error()), err)
			}
			if test.spec.Output > 0 && int64(out) != test.spec.Output {
				t.Errorf("took %d bytes of output, want %d", out, test.spec.Output)
			}
		})
	}
}

type count int64

func (c *count) Write(b []byte) (int, error) { *c += count(len(b)); return len(b), nil }

func TestCancel(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	expect.ErrorIs(t, worker.Run(ctx, worker.Spec{Name: "spin"}, io.Discard), context.Canceled)
	expect.ErrorIs(t, worker.Run(ctx, worker.Spec{Name: "spin"}, io.Discard), context.Canceled, "started after the cancel")
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestOutThatFails(t *testing.T) {
	expect.ErrorIs(t, worker.Run(within(t, time.Minute), worker.Spec{Name: "flood"}, full{}), errFull)
	// The same if the worker ended before its output was refused.
	expect.ErrorIs(t, worker.Run(
		within(t, time.Minute), worker.Spec{Name: "echo", In: strings.NewReader("x")}, full{},
	), errFull)
}

// A slow reader gets the whole output, long after the worker has ended.
func TestSlowOut(t *testing.T) {
	var got bytes.Buffer
	slow := writer(func(b []byte) (int, error) { time.Sleep(400 * time.Millisecond); return got.Write(b) })
	text := strings.Repeat("0123456789", 10_000)
	expect.Must(t, worker.Run(
		within(t, time.Minute), worker.Spec{Name: "echo", In: strings.NewReader(text)}, slow,
	))
	if got.String() != text {
		t.Errorf("got %d bytes, want %d", got.Len(), len(text))
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func TestWorkerHasNothing(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	expect.Must(t, os.WriteFile(secret, []byte("s3cret"), 0o644))
	t.Setenv("SECRET", "in the environment")

	// Control: the same function in this process succeeds in all of it.
	var control bytes.Buffer
	expect.Must(t, tryEscape(t.Context(), strings.NewReader(secret), nil, &control))
	for _, s := range []string{"SECRET=", "file: s3cret", "wrote a file", "has a socket"} {
		if !strings.Contains(control.String(), s) {
			t.Fatalf("the control did not get %q: %s", s, control.String())
		}
	}

	holds := map[string]bool{}
	for _, l := range worker.Layers() {
		t.Logf("%s: %v (%s)", l.Name, l.Holds, l.Detail)
		holds[l.Name] = l.Holds
	}
	var out bytes.Buffer
	expect.Must(t, worker.Run(
		within(t, time.Minute), worker.Spec{Name: "try escape", In: strings.NewReader(secret)}, &out,
	))
	if strings.Contains(out.String(), "environment:") {
		t.Errorf("the worker saw the environment: %s", out.String())
	}
	if !holds["system calls"] {
		t.Skip("calls are not filtered here: denial of files and sockets skipped")
	}
	if out.Len() > 0 {
		t.Errorf("the worker got: %s", out.String())
	}
}

// A worker dies with its parent, however the parent ends.
func TestParentKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("parent-death signal is Linux: skipped")
	}
	exe := expect.Value(os.Executable())(t)
	for range 3 {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), "CHILD_TEST_PARENT=1")
		outR := expect.Value(cmd.StdoutPipe())(t)
		expect.Must(t, cmd.Start())
		line := make([]byte, 32)
		expect.Value(outR.Read(line))(t)
		grand := childrenOf(t, cmd.Process.Pid)
		if len(grand) == 0 {
			t.Fatal("the worker's worker was not found: the test proves nothing")
		}
		expect.Must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		deadline := time.Now().Add(30 * time.Second)
		for _, pid := range grand {
			for alive(pid) {
				if time.Now().After(deadline) {
					t.Fatalf("process %d outlived its parent", pid)
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
}

func childrenOf(t *testing.T, pid int) (pids []int) {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, s := range stats {
		b, err := os.ReadFile(s)
		if err != nil {
			continue
		}
		after := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(after) > 1 && after[1] == strconv.Itoa(pid) {
			n, _ := strconv.Atoi(strings.Fields(string(b))[0])
			pids = append(pids, n)
		}
	}
	return pids
}

func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	return !strings.Contains(string(b), ") Z ")
}

// A program without Main starts no worker: it would start itself again and again.
func TestMainForgotten(t *testing.T) {
	exe := expect.Value(os.Executable())(t)
	cmd := exec.CommandContext(within(t, time.Minute), exe)
	cmd.Env = append(os.Environ(), "CHILD_TEST_FORGOT=1")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "worker.Main was not called") < 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMainOfOthers(t *testing.T) {
	if ran, code := worker.Main([]string{"x", "__worker", "nobody", "1", "1", "0"}, nil); !ran || code != 1 {
		t.Errorf("an unknown worker: ran %v, code %d", ran, code)
	}
	if ran, code := worker.Main([]string{"x", "__worker"}, nil); !ran || code != 1 {
		t.Errorf("a worker without arguments: ran %v, code %d", ran, code)
	}
	if ran, _ := worker.Main([]string{"x", "serve"}, nil); ran {
		t.Error("an ordinary command ran as a worker")
	}
}

func TestManyAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t)
	const n = 16
	errs := make(chan error, n)
	for i := range n {
		go func() {
			want := binary.BigEndian.AppendUint64(nil, uint64(i))
			var out bytes.Buffer
			err := worker.Run(context.Background(), worker.Spec{Name: "echo", In: bytes.NewReader(want)}, &out)
			if err == nil && !bytes.Equal(out.Bytes(), want) {
				err = fmt.Errorf("got %x, want %x", out.Bytes(), want)
			}
			errs <- err
		}()
	}
	for range n {
		expect.OK(t, <-errs)
	}
}
