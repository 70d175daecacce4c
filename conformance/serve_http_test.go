package conformance

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is the binary serving HTTP.
type served struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	first string // what it says when it starts
	more  *bytes.Buffer
	read  chan struct{} // closed when all of it is read
}

var servingLine = regexp.MustCompile(`serving MCP at (http://\S+)/mcp; (.*)`)

func serveHTTP(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"serve", "--http", "127.0.0.1:0", "--log-level", "debug"}, args...)...)
	cmd.Env, cmd.Dir = env, t.TempDir()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Standard input ends at once, which is nothing to a server on HTTP.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	s := &served{t: t, cmd: cmd, more: new(bytes.Buffer), read: make(chan struct{})}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	m := servingLine.FindStringSubmatch(line)
	if err != nil || m == nil {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("%v: %s%s", err, line, rest)
	}
	s.url, s.first = m[1], m[2]
	go func() {
		defer close(s.read)
		_, _ = io.Copy(s.more, lines)
	}()
	return s
}

func (s *served) post(token, session, message string) (status int, header http.Header, body string) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Error(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// open begins a session.
func (s *served) open(token string) string {
	s.t.Helper()
	status, header, body := s.post(token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if status != http.StatusOK {
		s.t.Fatalf("initialize: %d %s", status, body)
	}
	return header.Get("Mcp-Session-Id")
}

func (s *served) call(token, session, tool, args string) string {
	s.t.Helper()
	_, _, body := s.post(token, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`}}`)
	return body
}

// end sends a signal and says what the server printed after its first line.
func (s *served) end(signal os.Signal) string {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.read:
	case <-time.After(10 * time.Second):
		s.t.Fatalf("%v did not end it within 10 s", signal)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("%v: %v\n%s", signal, err, s.more)
	}
	return s.more.String()
}

func TestServeHTTP(t *testing.T) {
	env := environment(t)
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "long.txt"), bytes.Repeat([]byte("a line to be found\n"), 500), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(t, env, "--root", root)
	path, ok := strings.CutPrefix(s.first, "the token is in ")
	if !ok {
		t.Fatalf("the token's file is not named: %s", s.first)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(text))
	if status, header, body := s.post("", "", `{}`); status != http.StatusUnauthorized || header.Get("WWW-Authenticate") == "" || !strings.Contains(body, "Authorization: Bearer") {
		t.Errorf("without a token: %d %v %s", status, header, body)
	}
	session := s.open(token)
	receipt := s.call(token, session, "search", `{"pattern":"found"}`)
	if !strings.Contains(receipt, "LARGE OUTPUT DETECTED") || strings.Contains(receipt, "saved to") || strings.Contains(receipt, "full_output_saved_to") {
		t.Errorf("a receipt over HTTP names no file of the server's: %s", receipt)
	}
	id := shownID.FindString(receipt)
	if got := s.call(token, session, "jq", `{"source":"`+id+`","filter":"length","slurp":true}`); !strings.Contains(got, "500") {
		t.Errorf("jq: %s", got)
	}
	if log := s.end(syscall.SIGTERM); strings.Contains(log+s.first, token) {
		t.Error("the log holds the token")
	}
	// The next one takes the same token, and what was kept is there.
	s = serveHTTP(t, env, "--root", root)
	if got := s.call(token, s.open(token), "slice", `{"source":"`+id+`","lines":"1-1"}`); !strings.Contains(got, "a line to be found") {
		t.Errorf("after a restart: %s", got)
	}
	s.end(os.Interrupt)
}

func TestServeHTTPTokenFile(t *testing.T) {
	env := environment(t)
	root := t.TempDir()
	anna, bob := strings.Repeat("a", 40), strings.Repeat("b", 40)
	file := filepath.Join(root, "tokens") // within a root, where no tool may read it
	if err := os.WriteFile(file, []byte("anna: "+anna+"\nbob: "+bob+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "long.txt"), bytes.Repeat([]byte("a line to be found\n"), 500), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(t, env, "--root", root, "--token-file", file)
	as, bs := s.open(anna), s.open(bob)
	id := shownID.FindString(s.call(anna, as, "search", `{"pattern":"found"}`))
	if got := s.call(anna, as, "grep", `{"source":"`+id+`","pattern":"found","limit":1}`); !strings.Contains(got, "to be found") {
		t.Errorf("anna: %s", got)
	}
	if got := s.call(bob, bs, "grep", `{"source":"`+id+`","pattern":"found","limit":1}`); strings.Contains(got, "to be found") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("bob: %s", got)
	}
	if status, _, _ := s.post(bob, as, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusNotFound {
		t.Errorf("bob in anna's session: %d", status)
	}
	for _, args := range []string{`{"path":"tokens"}`, `{"path":"*"}`} {
		if got := s.call(anna, as, "read", args); strings.Contains(got, bob) {
			t.Errorf("a tool reads the token file: %s", got)
		}
	}
	if got := s.call(anna, as, "search", `{"pattern":"bbbb","all":true}`); strings.Contains(got, bob) {
		t.Errorf("a tool finds the token: %s", got)
	}
	if log := s.end(syscall.SIGHUP); strings.Contains(log, anna) || strings.Contains(log, bob) {
		t.Error("the log holds a token")
	}
}

func TestServeHTTPRefuses(t *testing.T) {
	env := environment(t)
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(strings.Repeat("a", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		args []string
		env  string
		want string
	}{
		{[]string{"--http", "0.0.0.0:0"}, "", "can be reached from other machines"},
		{[]string{"--http", "127.0.0.1:0", "--token-file", file}, "", "chmod 600"},
		{[]string{"--http", "127.0.0.1:0", "--token-file", file}, "MCP_FUNNEL_TOKEN=x", "unset one"},
		{[]string{"--http", "127.0.0.1:0"}, "MCP_FUNNEL_TOKEN=short", "openssl rand"},
		{[]string{"--http", "127.0.0.1:0"}, "MCP_FUNNEL_TOKEN=", "openssl rand"},
		{[]string{"--http", "nowhere"}, "", "HOST:PORT"},
		{[]string{"--http", "127.0.0.1:0", "--allow-origin", "*"}, "", "https://example.com"},
		{[]string{"--sse"}, "", "--http"},
	} {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, binary(t), append([]string{"serve", "--root", t.TempDir()}, k.args...)...)
		cmd.Env = slices.Clone(env)
		if k.env != "" {
			cmd.Env = append(cmd.Env, k.env)
		}
		out, err := cmd.CombinedOutput()
		stop()
		if err == nil || !strings.Contains(string(out), k.want) || strings.Contains(string(out), "=short") {
			t.Errorf("%v %s: %v\n%s", k.args, k.env, err, out)
		}
	}
}
