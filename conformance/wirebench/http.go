package main

import (
	"bytes"
	"context"
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

// overHTTP is a server spoken to by streamable HTTP, on connections that are kept.
type overHTTP struct {
	ctx     context.Context
	cmd     *exec.Cmd
	url     string
	token   string
	client  *http.Client
	session string
}

// address is how the servers say on standard error where they listen.
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
			return nil, errors.Join(fmt.Errorf("it does not say where it listens: %s", said), err, h.close())
		}
	}
	h.url = "http://" + string(address.FindSubmatch(said)[1]) + "/mcp"
	go func() { _, _ = io.Copy(io.Discard, errs) }()
	return h, nil
}

func (h *overHTTP) pid() int { return h.cmd.Process.Pid }

func (h *overHTTP) post(message []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if h.token != "" {
		r.Header.Set("Authorization", "Bearer "+h.token)
	}
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
		// The answer is the last event; nothing else was asked for.
		if at := bytes.LastIndex(body, []byte("data: ")); at >= 0 {
			body = bytes.TrimRight(body[at+len("data: "):], "\n")
		}
	}
	return body, nil
}

func (h *overHTTP) tell(message []byte) error {
	_, err := h.post(message)
	return err
}

func (h *overHTTP) ask(request []byte) ([]byte, error) { return h.post(request) }

func (h *overHTTP) askAll(requests [][]byte) error {
	results := make([]error, len(requests))
	var all sync.WaitGroup
	for i, request := range requests {
		all.Go(func() {
			answer, err := h.post(request)
			if err == nil {
				err = failed(answer)
			}
			results[i] = err
		})
	}
	all.Wait()
	return errors.Join(results...)
}

func (h *overHTTP) close() error {
	h.client.CloseIdleConnections()
	_ = h.cmd.Process.Signal(os.Interrupt)
	defer time.AfterFunc(4*time.Second, func() { _ = h.cmd.Process.Kill() }).Stop()
	_ = h.cmd.Wait() // how it ends is not measured
	return nil
}
