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

// link is a connection to an MCP server that the harness has started, over stdio or HTTP.
type link interface {
	// ask sends one request and returns the JSON-RPC message of the answer, valid until the next request.
	ask(request []byte) ([]byte, error)
	// askAll sends all requests concurrently and waits for all answers.
	askAll(requests [][]byte) error
	notify(message []byte) error
	// end stops the server: it closes its input or interrupts it, and kills it after 4 seconds.
	end()
	pid() int
}

const (
	hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"peers","version":"1"}}}`
	ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// initialize opens the session. took is the time from began to the server's answer.
func initialize(l link, began time.Time) (took time.Duration, err error) {
	answer, err := l.ask([]byte(hello))
	took = time.Since(began)
	if err := errors.Join(err, failed(answer)); err != nil {
		return took, err
	}
	return took, l.notify([]byte(ready))
}

// toolCall is a tools/call request that every round repeats.
type toolCall struct {
	tool string
	args map[string]any
}

func (c toolCall) request(id int) []byte {
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": c.tool, "arguments": c.args},
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
		edge = append(append([]byte(nil), answer[:2048]...), answer[len(answer)-2048:]...)
	} else if len(answer) > 0 && !json.Valid(answer) {
		return fmt.Errorf("not JSON: %.200q", answer)
	}
	if bytes.Contains(edge, []byte(`"isError":true`)) || !bytes.Contains(edge, []byte(`"result":`)) {
		return fmt.Errorf("failed: %.300q", edge)
	}
	return nil
}

// stdio is a link over the pipes of a child process.
type stdio struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	line []byte // buffer of the last answer, reused for the next
	errs bytes.Buffer
}

func startStdio(ctx context.Context, dir string, command []string) (_ link, err error) {
	s := &stdio{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	s.cmd.Dir, s.cmd.Stderr = dir, &s.errs
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	return s, s.cmd.Start()
}

func (s *stdio) pid() int { return s.cmd.Process.Pid }

func (s *stdio) notify(message []byte) error {
	_, err := s.in.Write(append(bytes.Clone(message), '\n'))
	return err
}

func (s *stdio) ask(request []byte) ([]byte, error) {
	if err := s.notify(request); err != nil {
		return nil, err
	}
	return s.answer()
}

func (s *stdio) askAll(requests [][]byte) error {
	err := s.notify(bytes.Join(requests, []byte("\n")))
	for range requests {
		if err == nil {
			var answer []byte
			if answer, err = s.answer(); err == nil {
				err = failed(answer)
			}
		}
	}
	return err
}

// answer reads messages until the next answer and skips notifications.
func (s *stdio) answer() ([]byte, error) {
	for {
		s.line = s.line[:0]
		for {
			part, err := s.out.ReadSlice('\n')
			s.line = append(s.line, part...)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, fmt.Errorf("the server: %w: %s", err, s.errs.String())
			}
		}
		if !bytes.Contains(s.line[:min(len(s.line), 200)], []byte(`"method":`)) {
			return s.line, nil
		}
	}
}

func (s *stdio) end() {
	_ = s.in.Close()
	defer time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Signal(os.Interrupt) }).Stop()
	waitOrKill(s.cmd)
}

func waitOrKill(cmd *exec.Cmd) {
	defer time.AfterFunc(4*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	_ = cmd.Wait() // the exit status does not matter
}

// overHTTP is a link over streamable HTTP with persistent connections.
type overHTTP struct {
	ctx                 context.Context
	cmd                 *exec.Cmd
	url, token, session string
	client              *http.Client
}

// address matches the listening address in a server's standard error.
var address = regexp.MustCompile(`(?m)(?:listening on |http://)(127\.0\.0\.1:\d+)`)

func startHTTP(ctx context.Context, dir, token string, env, command []string) (link, error) {
	h := &overHTTP{
		ctx: ctx, token: token, cmd: exec.CommandContext(ctx, command[0], command[1:]...),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * atOnce}},
	}
	h.cmd.Dir, h.cmd.Env = dir, append(os.Environ(), env...)
	errs, err := h.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	said := make([]byte, 0, 4096)
	for address.FindSubmatch(said) == nil {
		n, err := errs.Read(said[len(said):cap(said)])
		if said = said[:len(said)+n]; err != nil || len(said) == cap(said) {
			h.end()
			return nil, fmt.Errorf("it does not say where it listens: %s: %w", said, err)
		}
	}
	h.url = "http://" + string(address.FindSubmatch(said)[1]) + "/mcp"
	go func() { _, _ = io.Copy(io.Discard, errs) }() // ends with the server
	return h, nil
}

func (h *overHTTP) pid() int { return h.cmd.Process.Pid }

func (h *overHTTP) ask(message []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+h.token)
	if h.session != "" {
		r.Header.Set("Mcp-Session-Id", h.session)
	}
	response, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s: %.300s: %w", response.Status, body, err)
	}
	if s := response.Header.Get("Mcp-Session-Id"); s != "" && h.session == "" {
		h.session = s
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		// The answer is the last event: no other request shares the stream.
		if at := bytes.LastIndex(body, []byte("data: ")); at >= 0 {
			body = bytes.TrimRight(body[at+len("data: "):], "\n")
		}
	}
	return body, nil
}

func (h *overHTTP) notify(message []byte) error {
	_, err := h.ask(message)
	return err
}

func (h *overHTTP) askAll(requests [][]byte) error {
	results := make([]error, len(requests))
	var all sync.WaitGroup
	for i, request := range requests {
		all.Go(func() {
			answer, err := h.ask(request)
			if err == nil {
				err = failed(answer)
			}
			results[i] = err
		})
	}
	all.Wait()
	return errors.Join(results...)
}

func (h *overHTTP) end() {
	h.client.CloseIdleConnections()
	_ = h.cmd.Process.Signal(os.Interrupt)
	waitOrKill(h.cmd)
}

// served is a contestant that calls one tool of a server over stdio. The server starts before the first timed run and
// keeps running, so the time includes the protocol but not the start.
type served struct {
	words  []string
	pinned bool
	tool   string
	args   map[string]any
	server link
	asked  int
}

func (s *served) once(ctx context.Context, _ bool) (got sample, err error) {
	if s.server == nil {
		if s.server, err = startStdio(ctx, "", onOneCore(s.words, s.pinned)); err != nil {
			return got, err
		}
		if _, err := initialize(s.server, time.Now()); err != nil {
			return got, err
		}
	}
	s.asked++
	request := toolCall{s.tool, s.args}.request(s.asked)
	began := time.Now()
	answer, err := s.server.ask(request)
	if err := errors.Join(err, failed(answer)); err != nil {
		return got, err
	}
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	err = json.Unmarshal(answer, &m)
	got.took = time.Since(began)
	for _, c := range m.Result.Content {
		got.said += c.Text + "\n"
	}
	return got, err
}

func (s *served) close() {
	if s.server != nil {
		s.server.end()
	}
}
