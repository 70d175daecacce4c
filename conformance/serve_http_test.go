package conformance

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServeHTTP(t *testing.T) {
	drivesOnly(t)
	env := environment(t)
	root := t.TempDir()
	if err := os.WriteFile(
		filepath.Join(root, "long.txt"), bytes.Repeat([]byte("a line to be found\n"), 500), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	s := launch{env: env, flags: []string{"--root", root, "--log-level", "debug"}}.http(t)
	path, ok := strings.CutPrefix(s.told, "the token is in ")
	if !ok {
		t.Fatalf("the token's file is not named: %s", s.told)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(text))
	response, err := send(t.Context(), s.url+"/mcp", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") == "" ||
		!bytes.Contains(body, []byte("Authorization: Bearer")) {
		t.Errorf("without a token: %v %d %v %s", err, response.StatusCode, response.Header, body)
	}
	session := s.open(token)
	found, err := session.call("search", object{"pattern": "found"})
	if err != nil {
		t.Fatal(err)
	}
	receipt := string(found.result)
	if !strings.Contains(receipt, "LARGE OUTPUT DETECTED") || strings.Contains(receipt, "saved to") ||
		strings.Contains(receipt, "full_output_saved_to") {
		t.Errorf("a receipt over HTTP names no file of the server's: %s", receipt)
	}
	id := shownID.FindString(receipt)
	if got := session.mustCall("jq", object{"source": id, "filter": "length", "slurp": true}); !strings.Contains(
		got, "500",
	) {
		t.Errorf("jq: %s", got)
	}
	if log := s.end(syscall.SIGTERM); strings.Contains(log, token) {
		t.Error("the log holds the token")
	}
	// The next one takes the same token, and what was kept is there.
	s = launch{env: env, flags: []string{"--root", root, "--log-level", "debug"}}.http(t)
	if got := s.open(token).mustCall("slice", object{"source": id, "lines": "1-1"}); !strings.Contains(
		got, "a line to be found",
	) {
		t.Errorf("after a restart: %s", got)
	}
	s.end(os.Interrupt)
}

func TestServeHTTPTokenFile(t *testing.T) {
	drivesOnly(t)
	env := environment(t)
	root := t.TempDir()
	anna, bob := strings.Repeat("a", 40), strings.Repeat("b", 40)
	file := filepath.Join(root, "tokens") // within a root, where no tool may read it
	if err := os.WriteFile(file, []byte("anna: "+anna+"\nbob: "+bob+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(root, "long.txt"), bytes.Repeat([]byte("a line to be found\n"), 500), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	s := launch{env: env, flags: []string{"--root", root, "--token-file", file, "--log-level", "debug"}}.http(t)
	as, bs := s.open(anna), s.open(bob)
	id := shownID.FindString(as.mustCall("search", object{"pattern": "found"}))
	if got := as.mustCall("grep", object{"source": id, "pattern": "found", "limit": 1}); !strings.Contains(
		got, "to be found",
	) {
		t.Errorf("anna: %s", got)
	}
	if a, err := bs.call("grep", object{"source": id, "pattern": "found", "limit": 1}); err != nil ||
		strings.Contains(a.text(), "to be found") || !a.failed {
		t.Errorf("bob: %v %s", err, a.text())
	}
	if status := (httpSession{
		s, bob, as.id,
	}).status(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusNotFound {
		t.Errorf("bob in anna's session: %d", status)
	}
	for _, path := range []string{"tokens", "*"} {
		if a, err := as.call("read", object{"path": path}); err != nil || strings.Contains(string(a.result), bob) {
			t.Errorf("a tool reads the token file: %v %s", err, a.result)
		}
	}
	if a, err := as.call("search", object{"pattern": "bbbb", "all": true}); err != nil ||
		strings.Contains(string(a.result), bob) {
		t.Errorf("a tool finds the token: %v %s", err, a.result)
	}
	if log := s.end(syscall.SIGHUP); strings.Contains(log, anna) || strings.Contains(log, bob) {
		t.Error("the log holds a token")
	}
}

func TestServeHTTPRefuses(t *testing.T) {
	drivesOnly(t)
	env := environment(t)
	file := filepath.Join(t.TempDir(), "tokens")
	err := os.WriteFile(file, []byte(strings.Repeat("a", 40)), 0o644)
	if err == nil {
		err = os.Chmod(file, 0o644) // whatever the umask
	}
	if err != nil {
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
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
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
