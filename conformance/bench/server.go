//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// server is a connection to a server that this process has started.
type server struct {
	mcp.Connection
	cmd  *exec.Cmd
	last float64 // id of the last request
	at   string  // address and port of a server over HTTP
}

// startServer starts a server, over HTTP if token is not empty, and opens the session. The returned time is that from
// before the start to the answer to initialize, in seconds.
func startServer(ctx context.Context, dir, token string, command []string) (s *server, took float64, err error) {
	began := time.Now()
	s = &server{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	s.cmd.Dir, s.cmd.Env = dir, append(environment(), "MCP_FUNNEL_TOKEN="+token)
	if token != "" {
		if err := s.startHTTP(); err != nil {
			return nil, 0, err
		}
	}
	err = s.connect(ctx, token)
	took = time.Since(began).Seconds()
	if err == nil {
		err = s.Write(ctx, &jsonrpc.Request{Method: "notifications/initialized"})
	}
	if err != nil {
		s.end()
	}
	return s, took, err
}

// address matches the listening address in a server's standard error.
var address = regexp.MustCompile(`(?m)(?:listening on |http://)(127\.0\.0\.1:\d+)`)

// startHTTP starts the process and waits until it says where it listens.
func (s *server) startHTTP() error {
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	text := make([]byte, 0, 4096)
	for address.FindSubmatch(text) == nil {
		n, err := errs.Read(text[len(text):cap(text)])
		if text = text[:len(text)+n]; err != nil || len(text) == cap(text) {
			s.end()
			return fmt.Errorf("the server does not say where it listens: %s: %w", text, err)
		}
	}
	s.at = string(address.FindSubmatch(text)[1])
	go func() { _, _ = io.Copy(io.Discard, errs) }() // ends with the server
	return nil
}

// startStdio starts the process and returns its pipes as a transport.
func (s *server) startStdio() (mcp.Transport, error) {
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, s.cmd.Start()
}

// connect opens a session: over HTTP if the server listens, else over the pipes of the process, which it starts.
func (s *server) connect(ctx context.Context, token string) (err error) {
	client := &http.Client{Transport: bearer{&http.Transport{MaxIdleConnsPerHost: 2 * atOnce}, token}}
	var t mcp.Transport = &mcp.StreamableClientTransport{
		Endpoint: "http://" + s.at + "/mcp", HTTPClient: client, DisableStandaloneSSE: true, MaxEventSize: -1,
	}
	if s.at == "" {
		if t, err = s.startStdio(); err != nil {
			return err
		}
	}
	if s.Connection, err = t.Connect(ctx); err != nil {
		return err
	}
	_, err = s.call(ctx, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},`+
		`"clientInfo":{"name":"bench","version":"1"}}`)
	return err
}

// bearer adds a token to requests.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// end stops the server; it is killed after five seconds. A nil server has not started.
func (s *server) end() {
	if s == nil || s.cmd.Process == nil {
		return
	}
	if s.Connection != nil {
		_ = s.Close() // the end of its input ends a server over stdio
	}
	if s.at != "" {
		_ = s.cmd.Process.Signal(os.Interrupt)
	}
	defer time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() }).Stop()
	_ = s.cmd.Wait() // the exit status does not matter
}

// call sends a request and returns the result. A tool's failure is an error, too.
func (s *server) call(ctx context.Context, method, params string) (json.RawMessage, error) {
	if err := s.Write(ctx, s.request(method, params)); err != nil {
		return nil, err
	}
	return s.receive(ctx)
}

// request returns a request with the next id.
func (s *server) request(method, params string) *jsonrpc.Request {
	s.last++
	id, _ := jsonrpc.MakeID(s.last) // a number always is one
	return &jsonrpc.Request{ID: id, Method: method, Params: json.RawMessage(params)}
}

// receive returns the result of the next response, and skips notifications.
func (s *server) receive(ctx context.Context) (json.RawMessage, error) {
	for {
		m, err := s.Read(ctx)
		if err != nil {
			return nil, err
		}
		if r, ok := m.(*jsonrpc.Response); ok {
			if r.Error == nil && bytes.Contains(r.Result, []byte(`"isError":true`)) { // texts have their quotes escaped
				return nil, fmt.Errorf("the call failed: %.300s", r.Result)
			}
			return r.Result, r.Error
		}
	}
}
