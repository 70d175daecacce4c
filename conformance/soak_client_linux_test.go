package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// soaked is a server process that is driven over stdio by many at once.
type soaked struct {
	cmd   *exec.Cmd
	said  bytes.Buffer // standard error; read after the end
	store string

	write sync.Mutex
	in    io.WriteCloser

	mu      sync.Mutex
	next    int
	waiting map[string]chan soakAnswer
	refused int   // frames that were none: answered without an ID
	broken  error // what is no JSON-RPC on stdout
	read    chan struct{}
}

type soakAnswer struct {
	ID     json.RawMessage
	Error  *struct{ Message string }
	Result struct {
		IsError bool
		Content []struct{ Text string }
	}
}

// text is what an answer says, its error where it is one.
func (a soakAnswer) text() (text string, failed bool) {
	if a.Error != nil {
		return a.Error.Message, true
	}
	for _, c := range a.Result.Content {
		text += c.Text + "\n"
	}
	return text, a.Result.IsError
}

// soak starts a server on a root and a store.
func soak(t *testing.T, root, store string) *soaked {
	t.Helper()
	s := &soaked{store: store, waiting: map[string]chan soakAnswer{}, read: make(chan struct{})}
	s.cmd = exec.CommandContext(t.Context(), binary(t), "--root", root, "--store", store, "--min-free", "0", "--quota", "64MiB", "--call-timeout", "40s")
	s.cmd.Env = append(environment(t), "GOTRACEBACK=all")
	s.cmd.Stderr = &s.said
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	go s.listen(bufio.NewReaderSize(out, 1<<20))
	s.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *soaked) listen(out *bufio.Reader) {
	defer close(s.read)
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			return
		}
		var a soakAnswer
		err = json.Unmarshal(line, &a)
		s.mu.Lock()
		switch id := string(a.ID); {
		case err != nil:
			s.broken = fmt.Errorf("%w: %.200q", err, line)
		case id == "null":
			s.refused++
		case s.waiting[id] != nil:
			s.waiting[id] <- a
			delete(s.waiting, id)
		}
		s.mu.Unlock()
	}
}

func (s *soaked) send(line string) {
	s.write.Lock()
	defer s.write.Unlock()
	_, _ = io.WriteString(s.in, line+"\n") // where the server is gone, no answer comes
}

// begin sends a request; its answer comes in the channel.
func (s *soaked) begin(method string, params any) (id string, answer chan soakAnswer) {
	p, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	answer = make(chan soakAnswer, 1)
	s.mu.Lock()
	s.next++
	id = strconv.Itoa(s.next)
	s.waiting[id] = answer
	s.mu.Unlock()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, p))
	return id, answer
}

var errUnanswered = errors.New("no answer within a minute")

// ask waits for the answer.
func (s *soaked) ask(method string, params any) (soakAnswer, error) {
	id, answer := s.begin(method, params)
	return s.await(id, answer)
}

func (s *soaked) await(id string, answer chan soakAnswer) (soakAnswer, error) {
	wait := time.NewTimer(time.Minute)
	defer wait.Stop()
	select {
	case a := <-answer:
		return a, nil
	case <-s.read:
		return soakAnswer{}, errors.New("the server is gone")
	case <-wait.C:
		s.forget(id)
		return soakAnswer{}, errUnanswered
	}
}

func (s *soaked) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}

// cancel takes a request back: no answer is due.
func (s *soaked) cancel(id string) {
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id))
}

// workers are the processes that the server started itself and that run now.
func (s *soaked) workers() (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	for _, name := range tasks {
		b, _ := os.ReadFile(name)
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// measured is what a process takes at a moment.
type measured struct {
	at          time.Duration
	memory      int64 // bytes that are resident
	descriptors int
	threads     int
}

// measure reads it from /proc; the process must be ours and alive.
func (s *soaked) measure() (m measured, err error) {
	proc := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		return m, err
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return m, err
	}
	field := func(name string) int64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		n, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
		return n
	}
	return measured{memory: field("VmRSS") << 10, descriptors: len(fds), threads: int(field("Threads"))}, nil
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ .*\[`)

// dump ends the process the way that makes it write down its goroutines, and counts them.
func (s *soaked) dump() (goroutines int) {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.read
	_ = s.cmd.Wait()
	return len(goroutine.FindAllString(s.said.String(), -1))
}
