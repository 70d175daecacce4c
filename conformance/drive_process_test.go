package conformance

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// launch describes how to start a server; the zero value is the released binary in an environment of its own. Its
// client speaks stdio (drive_stdio_test.go) or HTTP (drive_http_test.go).
type launch struct {
	program string   // "": the binary
	wrap    []string // a command that runs the program, as words
	env     []string // all of it; nil: that of [environment]
	flags   []string
	dir     string
	stdin   io.Reader // of a program that runs to its end

	// Over stdio: the client's capabilities, and its answers to requests of the server, by method.
	capabilities map[string]any
	replies      map[string]func() any
	first        parts // sent before the handshake
}

// command returns the command; it is not started yet.
func (l launch) command(t testing.TB) *exec.Cmd {
	t.Helper()
	if l.program == "" {
		l.program = binary(t)
	}
	if l.env == nil {
		l.env = environment(t)
	}
	words := append(append(append([]string{}, l.wrap...), l.program), l.flags...)
	cmd := exec.Command(words[0], words[1:]...) //nolint:noctx // it ends with the test, or is killed
	cmd.Env, cmd.Dir = l.env, l.dir
	return cmd
}

// output runs the program to its end, and returns what it printed and its exit code.
func (l launch) output(t testing.TB) (out, errs string, code int) {
	t.Helper()
	cmd := l.command(t)
	var o, e bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.stdin, &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// process is a program started by a test.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	log   logBuffer     // its standard error
	ended chan struct{} // closed after its end, when all its output is read
	err   error         // from Wait; read it only after ended is closed
}

// run starts a command. The caller must end it.
func run(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.log
	cmd.WaitDelay = 5 * time.Second // for descendants that still hold its output
	expect.Must(t, cmd.Start())
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill kills the process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// end sends a signal that ends it, and gives all that it wrote on standard error. It fails the test where the
// process goes on, or does not end well.
func (p *process) end(signal os.Signal) string {
	p.t.Helper()
	expect.Must(p.t, p.cmd.Process.Signal(signal))
	select {
	case <-p.ended:
	case <-time.After(5 * time.Minute):
		p.kill()
		p.t.Fatalf("%v did not end %s in time:\n%s", signal, filepath.Base(p.cmd.Path), &p.log)
	}
	expect.OK(p.t, p.err, "%v\n%s", signal, &p.log)
	return p.log.String()
}

// running says that it has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// logBuffer holds what a program writes, and can be read meanwhile.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// after is what stands behind a mark in its line; false while there is no such line, whole.
func (b *logBuffer) after(mark string) (string, bool) {
	_, rest, _ := strings.Cut(b.String(), mark)
	line, _, whole := strings.Cut(rest, "\n")
	return line, whole
}

// waitFor waits until a condition holds, and says whether it came to hold. In an ordinary run it looks less often the
// longer it waits: many conditions read all of /proc.
func waitFor(limit time.Duration, holds func() bool) bool {
	pause, most := 5*time.Millisecond, promise.Size(60*time.Millisecond, 10*time.Millisecond)
	for end := time.Now().Add(limit); ; time.Sleep(pause) {
		pause = min(2*pause, most)
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
