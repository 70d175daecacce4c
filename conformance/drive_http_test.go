package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// testToken is the default token of these tests.
const testToken = "0123456789abcdef0123456789abcdef"

// httpServer is a server process whose client speaks HTTP.
type httpServer struct {
	*process
	url  string // "http://127.0.0.1:PORT"
	told string // the text after its address on standard error
}

// serveHTTP starts the binary over HTTP, with all its endpoints and testToken.
func serveHTTP(t testing.TB, flags ...string) *httpServer {
	t.Helper()
	return launchHTTP(t, binary(t), flags...)
}

// launchHTTP starts a program other than the binary over HTTP.
func launchHTTP(t testing.TB, program string, flags ...string) *httpServer {
	t.Helper()
	return launch{
		program: program,
		env:     append(environment(t), "MCP_FUNNEL_TOKEN="+testToken),
		flags:   append([]string{"--sse"}, flags...),
	}.http(t)
}

// http starts the binary over HTTP.
func (l launch) http(t testing.TB) *httpServer {
	t.Helper()
	l.flags = append([]string{"serve", "--http", "127.0.0.1:0"}, l.flags...)
	cmd := l.command(t)
	cmd.Dir = t.TempDir()
	s := listening(t, cmd, "serving MCP at ")
	s.url = strings.TrimSuffix(s.url, "/mcp")
	return s
}

// listening starts a server that prints its address on standard error, between a mark and a space or semicolon. The
// server is interrupted at the end of the test and must then exit.
func listening(t testing.TB, cmd *exec.Cmd, mark string) *httpServer {
	t.Helper()
	s := &httpServer{process: run(t, cmd)}
	t.Cleanup(func() {
		if s.running() {
			s.end(os.Interrupt)
		}
		if t.Failed() {
			t.Logf("%s said:\n%.16000s", cmd.Path, &s.log)
		}
	})
	line, found := "", false
	waitFor(5*time.Minute, func() bool {
		line, found = s.log.after(mark)
		return found || !s.running()
	})
	if !found {
		s.kill()
		t.Fatalf("%s said nothing of where it listens:\n%s", cmd.Path, &s.log)
	}
	s.url, s.told = line, ""
	if end := strings.IndexAny(line, " ;"); end >= 0 {
		s.url, s.told = line[:end], strings.TrimLeft(line[end:], "; ")
	}
	return s
}

// send posts a message; headers are pairs. The caller closes the body.
func send(ctx context.Context, url, message string, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(request)
}

// post sends a message that the server must accept.
func post(ctx context.Context, url, message string, headers ...string) (*http.Response, error) {
	response, err := send(ctx, url, message, headers...)
	if err == nil && response.StatusCode >= 300 {
		b, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s: %s", response.Status, b)
	}
	return response, err
}

// events calls each with the data of each event, until the stream ends or each returns false.
func events(body io.Reader, each func(event, data string) (more bool)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	event, data := "", ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "event":
			event = value
		case field == "data":
			data += value
		case lines.Text() == "" && data != "":
			if !each(event, data) {
				return nil
			}
			event, data = "", ""
		}
	}
	return lines.Err()
}

// httpSession is a session after the handshake.
type httpSession struct {
	server    *httpServer
	token, id string
}

// open opens a session.
func (s *httpServer) open(token string) httpSession {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), answerLimit)
	defer stop()
	response, err := post(ctx, s.url+"/mcp", hello, "Authorization", "Bearer "+token)
	expect.Must(s.t, err)
	_ = response.Body.Close()
	return httpSession{s, token, response.Header.Get("Mcp-Session-Id")}
}

// status returns the HTTP status of a message in a session.
func (h httpSession) status(message string) int {
	h.server.t.Helper()
	ctx, stop := context.WithTimeout(h.server.t.Context(), answerLimit)
	defer stop()
	response, err := send(ctx, h.server.url+"/mcp", message, "Authorization", "Bearer "+h.token, "Mcp-Session-Id", h.id)
	expect.Must(h.server.t, err)
	_ = response.Body.Close()
	return response.StatusCode
}

// call calls a tool.
func (h httpSession) call(tool string, args any) (answer, error) {
	begun := time.Now()
	request, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      1,
		"method":  "tools/call",
		"params":  map[string]any{"name": tool, "arguments": args},
	})
	if err != nil {
		return answer{}, err
	}
	ctx, stop := context.WithTimeout(h.server.t.Context(), answerLimit)
	defer stop()
	response, err := post(
		ctx, h.server.url+"/mcp", string(request), "Authorization", "Bearer "+h.token, "Mcp-Session-Id", h.id,
	)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var m message
	take := func(text []byte) error {
		m = message{}
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		m.size, m.took = len(text), time.Since(begun)
		return nil
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		var bad error
		err = events(response.Body, func(_, data string) bool {
			bad = take([]byte(data))
			return bad == nil && m.Method != "" // notes come before the answer
		})
		if err == nil {
			err = bad
		}
	} else {
		var body []byte
		if body, err = io.ReadAll(response.Body); err == nil {
			err = take(body)
		}
	}
	if err != nil {
		return answer{}, err
	}
	if !m.valid() || m.Method != "" {
		return answer{}, fmt.Errorf("%w, but %+v", errNoAnswer, m)
	}
	return m.said()
}

// mustCall calls a tool, which must answer, and returns the text.
func (h httpSession) mustCall(tool string, args any) string {
	h.server.t.Helper()
	a := expect.Value(h.call(tool, args))(h.server.t)
	return a.text()
}
