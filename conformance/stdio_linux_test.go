package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stdio is one process that serves on stdio, and the client's end of its pipes.
type stdio struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bounded
	ended  chan struct{} // its output has ended

	mu      sync.Mutex
	writing sync.Mutex
	last    int
	waiting map[string]chan reply // by id
	strays  []reply               // answers to what was written raw
	broken  []string              // lines that are no JSON-RPC
}

// reply is one answer of the server.
type reply struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
	took time.Duration
	size int
}

// answer is what a tool's call gave the model.
type answer struct {
	blocks []string
	failed bool // the tool's error, or the protocol's
	took   time.Duration
	size   int // bytes of the whole message
}

func (a answer) text() string { return strings.Join(a.blocks, "\n") }

// bounded keeps the first bytes of a log.
type bounded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Write(p[:min(len(p), max(0, 16<<10-b.text.Len()))])
	return len(p), nil
}

func (b *bounded) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.text.String() }

// serve starts the binary on a root, past its handshake. It is killed at the test's end.
func serve(t testing.TB, root string, flags ...string) *stdio {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"--root", root, "--min-free", "0"}, flags...)...) //nolint:noctx // killed at the test's end
	cmd.Env = append(environment(t), "GOMEMLIMIT=3GiB")
	return begin(t, cmd)
}

// begin starts a server and shakes hands.
func begin(t testing.TB, cmd *exec.Cmd) *stdio {
	t.Helper()
	s := &stdio{cmd: cmd, waiting: map[string]chan reply{}, ended: make(chan struct{})}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &s.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(out)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
		_ = cmd.Wait()
	})
	hello := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bounds", "version": "1"}}
	if _, err := s.ask("initialize", hello, 30*time.Second); err != nil {
		t.Fatalf("no handshake: %v; %s", err, s.stderr.String())
	}
	s.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return s
}

func (s *stdio) read(out io.Reader) {
	defer close(s.ended)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			s.take(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *stdio) take(line []byte) {
	var batch []reply
	if line[0] != '[' {
		batch = make([]reply, 1)
	}
	var err error
	if batch == nil {
		err = json.Unmarshal(line, &batch)
	} else {
		err = json.Unmarshal(line, &batch[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken = append(s.broken, fmt.Sprintf("%v: %.200s", err, line))
		return
	}
	for _, m := range batch {
		m.size = len(line)
		id := string(m.ID)
		if to, ok := s.waiting[id]; ok && m.Method == "" {
			delete(s.waiting, id)
			to <- m
		} else if m.Method == "" {
			s.strays = append(s.strays, m)
		}
	}
}

func (s *stdio) write(b []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, _ = s.in.Write(b) // a server that has ended is found where its answer is waited for
}

// start sends a request; the answer comes on the channel.
func (s *stdio) start(method string, params any) (id string, to chan reply) {
	s.mu.Lock()
	s.last++
	id = strconv.Itoa(s.last)
	to = make(chan reply, 1)
	s.waiting[id] = to
	s.mu.Unlock()
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	if err != nil {
		panic(err)
	}
	go s.write(append(b, '\n')) // a large one waits for the server to read
	return id, to
}

func (s *stdio) ask(method string, params any, limit time.Duration) (reply, error) {
	begun := time.Now()
	_, to := s.start(method, params)
	return s.await(method, to, begun, limit)
}

func (s *stdio) await(what string, to chan reply, begun time.Time, limit time.Duration) (reply, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case m := <-to:
		m.took = time.Since(begun)
		return m, nil
	case <-s.ended:
		return reply{}, fmt.Errorf("%w to %s: the server has ended: %s", errNoAnswer, what, s.stderr.String())
	case <-timer.C:
		return reply{}, fmt.Errorf("%w to %s in %s", errNoAnswer, what, limit)
	}
}

// call makes a tool's call.
func (s *stdio) call(tool string, args any, limit time.Duration) (answer, error) {
	m, err := s.ask("tools/call", map[string]any{"name": tool, "arguments": args}, limit)
	if err != nil {
		return answer{}, err
	}
	return said(m)
}

// said reads what the model is shown.
func said(m reply) (answer, error) {
	if m.Error != nil {
		return answer{blocks: []string{m.Error.Message}, failed: true, took: m.took, size: m.size}, nil
	}
	var r struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		return answer{}, err
	}
	a := answer{failed: r.IsError, took: m.took, size: m.size}
	for _, c := range r.Content {
		if c.Type != "text" {
			c.Text = "(" + c.Type + ")"
		}
		a.blocks = append(a.blocks, c.Text)
	}
	return a, nil
}

func (s *stdio) ping() error {
	m, err := s.ask("ping", map[string]any{}, 30*time.Second)
	if err == nil && m.Error != nil {
		err = errors.New(m.Error.Message)
	}
	return err
}

// peak is the most memory the process ever held, in bytes.
func (s *stdio) peak(t testing.TB) int64 {
	t.Helper()
	n, ok := highWater(s.cmd.Process.Pid)
	if !ok {
		t.Fatalf("process %d has ended", s.cmd.Process.Pid)
	}
	return n
}

// highWater is the most memory that a process held so far, in bytes; false where it has ended.
func highWater(pid int) (int64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, found := strings.Cut(string(b), "VmHWM:")
	if !found {
		return 0, false
	}
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kb << 10, err == nil
}

// descriptors is how many the process has open.
func (s *stdio) descriptors(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// stat is a process's state and its parent, from /proc; state 0: there is none.
func stat(pid int) (state byte, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 2 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(f[1])
	return f[0][0], parent
}

// alive says that a process runs: one that only waits to be counted as dead does not.
func alive(pid int) bool {
	state, _ := stat(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// below are the processes that one started, and that they started.
func below(pid int) []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	parents := map[int]int{}
	for _, name := range names {
		n, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if state, parent := stat(n); state != 0 && state != 'Z' {
			parents[n] = parent
		}
	}
	var all []int
	for _, n := range slices.Sorted(maps.Keys(parents)) {
		for p := n; p > 1; p = parents[p] {
			if parents[p] == pid {
				all = append(all, n)
				break
			}
		}
	}
	return all
}

// waitFor waits until a condition holds, and says whether it came to hold.
func waitFor(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
