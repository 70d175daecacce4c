package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// session is a client of a server process over stdio.
type session struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	limit time.Duration // for one answer

	mu      sync.Mutex
	last    int
	waiting map[int]chan answered
	strays  []string // lines of standard output that are no message of the protocol
	ended   chan struct{}
}

// answered is one answer.
type answered struct {
	Text   string // all text of it, or the error's message
	Failed bool
}

// errNoAnswer: none came within the limit.
var errNoAnswer = errors.New("no answer")

// serving starts a server, which ends with the test.
func serving(t testing.TB, program string, env []string, args ...string) *session {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, cmd: cmd, in: in, limit: 30 * time.Second, waiting: map[int]chan answered{}, ended: make(chan struct{})}
	go s.listen(out)
	t.Cleanup(func() {
		_ = in.Close()
		select {
		case <-s.ended:
		case <-time.After(5 * time.Second):
		}
		stop()
		_ = cmd.Wait()
	})
	s.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "conformance", "version": "1"}})
	if _, err := s.call("find", map[string]any{"show": "count"}); err != nil {
		t.Fatalf("the server does not serve: %v", err)
	}
	return s
}

func (s *session) listen(out io.Reader) {
	defer close(s.ended)
	for r := bufio.NewReaderSize(out, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			s.take(line)
		}
		if err != nil {
			return
		}
	}
}

func (s *session) take(line []byte) {
	var m struct {
		Version string `json:"jsonrpc"`
		ID      *int   `json:"id"`
		Method  string `json:"method"`
		Error   *struct {
			Message string `json:"message"`
		} `json:"error"`
		Result *struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := json.Unmarshal(line, &m)
	if err != nil || m.Version != "2.0" || m.Method == "" && (m.ID == nil || m.Result == nil && m.Error == nil) {
		s.strays = append(s.strays, string(line))
		return
	}
	if m.ID == nil {
		return
	}
	to, ok := s.waiting[*m.ID]
	if !ok {
		s.strays = append(s.strays, string(line))
		return
	}
	delete(s.waiting, *m.ID)
	var a answered
	if m.Error != nil {
		a = answered{Text: m.Error.Message, Failed: true}
	} else {
		texts := make([]string, len(m.Result.Content))
		for i, c := range m.Result.Content {
			texts[i] = c.Text
		}
		a = answered{Text: strings.Join(texts, "\n"), Failed: m.Result.IsError}
	}
	to <- a
	close(to)
}

// request sends one request; its answer comes on the channel, which is closed then.
func (s *session) request(method string, params any) <-chan answered {
	s.t.Helper()
	to := make(chan answered, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = to
	s.mu.Unlock()
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		s.t.Errorf("%s: %v", method, err)
	}
	return to
}

// call makes a tool call and waits for its answer, until the limit.
func (s *session) call(tool string, args map[string]any) (answered, error) {
	s.t.Helper()
	select {
	case a := <-s.request("tools/call", map[string]any{"name": tool, "arguments": args}):
		return a, nil
	case <-s.ended:
		return answered{}, fmt.Errorf("%w: the server has ended", errNoAnswer)
	case <-time.After(s.limit):
		return answered{}, fmt.Errorf("%w within %s", errNoAnswer, s.limit)
	}
}

// stray is what stood on standard output that is no message of the protocol.
func (s *session) stray() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays
}
