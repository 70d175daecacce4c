//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// transport carries messages to an MCP server that the harness has started, and answers back.
type transport interface {
	// exchange sends messages concurrently and waits for the given number of answers, none of which may be a failure.
	// It returns the last answer, valid until the next exchange.
	exchange(messages [][]byte, answers int) ([]byte, error)
}

// link is a connection to a server.
type link struct {
	transport
	cmd  *exec.Cmd
	stop func() // asks the server to end
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":` +
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// startServer starts a server, over HTTP if token is not empty, and opens the session. The returned time is that from
// before the start to the answer to initialize.
func startServer(ctx context.Context, dir, token string, command []string) (*link, time.Duration, error) {
	began := time.Now()
	l := &link{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	l.cmd.Dir = dir
	start := l.startStdio
	if token != "" {
		start = func() error { return l.startHTTP(ctx, token) }
	}
	if err := start(); err != nil {
		return nil, 0, err
	}
	_, err := l.exchange([][]byte{[]byte(hello)}, 1)
	took := time.Since(began)
	if err == nil {
		_, err = l.exchange([][]byte{[]byte(ready)}, 0)
	}
	if err != nil {
		l.end()
	}
	return l, took, err
}

// end stops the server, and kills it after 4 seconds.
func (l *link) end() {
	l.stop()
	defer time.AfterFunc(2*time.Second, func() { _ = l.cmd.Process.Signal(os.Interrupt) }).Stop()
	defer time.AfterFunc(4*time.Second, func() { _ = l.cmd.Process.Kill() }).Stop()
	_ = l.cmd.Wait() // the exit status does not matter
}

// call makes one tool call and returns the time until its answer.
func (l *link) call(request []byte) (answer []byte, took time.Duration, err error) {
	began := time.Now()
	answer, err = l.exchange([][]byte{request}, 1)
	return answer, time.Since(began), err
}

// toolCall returns a tools/call request.
func toolCall(id int, tool string, args map[string]any) []byte {
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args},
	})
	if err != nil {
		panic(err) // plain maps of strings
	}
	return b
}

// failed returns an error if an answer is not a successful result. Of an answer over 4096 bytes it checks only both
// ends: the middle is the content of a file.
func failed(answer []byte) error {
	edge := answer
	if len(answer) > 4096 {
		edge = append(bytes.Clone(answer[:2048]), answer[len(answer)-2048:]...)
	} else if len(answer) > 0 && !json.Valid(answer) {
		return fmt.Errorf("not JSON: %.200q", answer)
	}
	if bytes.Contains(edge, []byte(`"isError":true`)) || !bytes.Contains(edge, []byte(`"result":`)) {
		return fmt.Errorf("failed: %.300q", edge)
	}
	return nil
}

// stdio is the transport over the pipes of a child process.
type stdio struct {
	in   io.Writer
	out  *bufio.Reader
	line []byte // buffer of the last answer, reused for the next
	errs bytes.Buffer
}

func (l *link) startStdio() error {
	s := &stdio{}
	in, err := l.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.in, s.out, l.cmd.Stderr = in, bufio.NewReaderSize(out, 1<<20), &s.errs
	l.transport, l.stop = s, func() { _ = in.Close() }
	return l.cmd.Start()
}

func (s *stdio) exchange(messages [][]byte, answers int) ([]byte, error) {
	if _, err := s.in.Write(append(bytes.Join(messages, []byte("\n")), '\n')); err != nil {
		return nil, err
	}
	for ; answers > 0; answers-- {
		if err := s.readAnswer(); err != nil {
			return nil, err
		}
		if err := failed(s.line); err != nil {
			return nil, err
		}
	}
	return s.line, nil
}

// readAnswer reads messages until the next answer and skips notifications.
func (s *stdio) readAnswer() error {
	for {
		s.line = s.line[:0]
		for more := true; more; {
			part, err := s.out.ReadSlice('\n')
			s.line = append(s.line, part...)
			if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more {
				return fmt.Errorf("the server: %w: %s", err, s.errs.String())
			}
		}
		if !bytes.Contains(s.line[:min(len(s.line), 200)], []byte(`"method":`)) {
			return nil
		}
	}
}

// webTransport is streamable HTTP with persistent connections.
type webTransport struct {
	ctx                 context.Context
	url, token, session string
	client              *http.Client
}

// address matches the listening address in a server's standard error.
var address = regexp.MustCompile(`(?m)(?:listening on |http://)(127\.0\.0\.1:\d+)`)

func (l *link) startHTTP(ctx context.Context, token string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * atOnce}}
	l.stop = func() { client.CloseIdleConnections(); _ = l.cmd.Process.Signal(os.Interrupt) }
	l.cmd.Env = append(os.Environ(), "MCP_FUNNEL_TOKEN="+token)
	errs, err := l.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := l.cmd.Start(); err != nil {
		return err
	}
	text := make([]byte, 0, 4096)
	for address.FindSubmatch(text) == nil {
		n, err := errs.Read(text[len(text):cap(text)])
		if text = text[:len(text)+n]; err != nil || len(text) == cap(text) {
			l.end()
			return fmt.Errorf("the server does not say where it listens: %s: %w", text, err)
		}
	}
	url := "http://" + string(address.FindSubmatch(text)[1]) + "/mcp"
	l.transport = &webTransport{ctx: ctx, url: url, token: token, client: client}
	go func() { _, _ = io.Copy(io.Discard, errs) }() // ends with the server
	return nil
}

func (t *webTransport) exchange(messages [][]byte, answers int) (last []byte, err error) {
	results := make([]error, len(messages))
	var all sync.WaitGroup
	for i, message := range messages {
		all.Go(func() {
			answer, err := t.post(message)
			if err == nil && answers > 0 {
				err = failed(answer)
			}
			if results[i] = err; i == len(messages)-1 {
				last = answer
			}
		})
	}
	all.Wait()
	return last, errors.Join(results...)
}

func (t *webTransport) post(message []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(t.ctx, http.MethodPost, t.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+t.token)
	if t.session != "" {
		r.Header.Set("Mcp-Session-Id", t.session)
	}
	response, err := t.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s: %.300s: %w", response.Status, body, err)
	}
	if t.session == "" { // only the answer to initialize: later requests run concurrently
		t.session = response.Header.Get("Mcp-Session-Id")
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		// The answer is the last event: no other request shares the stream.
		if at := bytes.LastIndex(body, []byte("data: ")); at >= 0 {
			body = bytes.TrimRight(body[at+len("data: "):], "\n")
		}
	}
	return body, nil
}

// served is a runner that calls one tool of a server over stdio. The server starts before the first timed run and
// keeps running, so the time includes the protocol but not the start.
type served struct {
	words  []string
	tool   string
	method string // called instead of a tool, with args as its parameters; the output is the answer
	args   map[string]any
	after  func() error // called after each call, not timed; nil: nothing
	server *link
	calls  int
}

func (s *served) run(ctx context.Context, _ bool) (got sample, err error) {
	if s.server == nil {
		if s.server, _, err = startServer(ctx, "", "", s.words); err != nil {
			s.server = nil
			return got, err
		}
	}
	s.calls++
	request := toolCall(s.calls, s.tool, s.args)
	if s.method != "" {
		request, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.calls, "method": s.method, "params": s.args})
	}
	began := time.Now()
	answer, _, err := s.server.call(request)
	if err != nil {
		return got, err
	}
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	err = json.Unmarshal(answer, &m)
	got.time = time.Since(began)
	for _, c := range m.Result.Content {
		got.output += c.Text + "\n"
	}
	if s.method != "" {
		got.output = string(answer)
	}
	if s.after != nil {
		err = errors.Join(err, s.after())
	}
	return got, err
}

func (s *served) close() {
	if s.server != nil {
		s.server.end()
	}
}
