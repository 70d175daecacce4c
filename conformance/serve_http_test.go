package conformance

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestServeHTTP(t *testing.T) {
	drivesOnly(t)
	env := environment(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "long.txt"), strings.Repeat("a line to be found\n", 500))
	s := launch{env: env, flags: []string{"--root", root, "--log-level", "debug"}}.http(t)
	path, ok := strings.CutPrefix(s.told, "the token is in ")
	if !ok {
		t.Fatalf("the token's file is not named: %s", s.told)
	}
	text, err := os.ReadFile(path)
	expect.Must(t, err)
	token := strings.TrimSpace(string(text))
	response, err := send(t.Context(), s.url+"/mcp", `{}`)
	expect.Must(t, err)
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") == "" ||
		!bytes.Contains(body, []byte("Authorization: Bearer")) {
		t.Errorf("without a token: %v %d %v %s", err, response.StatusCode, response.Header, body)
	}
	session := s.open(token)
	found, err := session.call("search", object{"pattern": "found"})
	expect.Must(t, err)
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

func TestServeHTTPRefuses(t *testing.T) {
	drivesOnly(t)
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, strings.Repeat("a", 40))
	if err := os.Chmod(file, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	for _, k := range []struct {
		args []string
		env  string
		want string
	}{
		{[]string{"--http", "0.0.0.0:0"}, "A=", "can be reached from other machines"},
		{[]string{"--http", "127.0.0.1:0", "--token-file", file}, "A=", "chmod 600"},
		{[]string{"--http", "127.0.0.1:0", "--token-file", file}, "MCP_FUNNEL_TOKEN=x", "unset one"},
		{[]string{"--http", "127.0.0.1:0"}, "MCP_FUNNEL_TOKEN=short", "openssl rand"},
		{[]string{"--http", "127.0.0.1:0"}, "MCP_FUNNEL_TOKEN=", "openssl rand"},
		{[]string{"--http", "nowhere"}, "A=", "HOST:PORT"},
		{[]string{"--http", "127.0.0.1:0", "--allow-origin", "*"}, "A=", "https://example.com"},
		{[]string{"--sse"}, "A=", "--http"},
	} {
		l := launch{env: append(environment(t), k.env), flags: append([]string{"serve", "--root", t.TempDir()}, k.args...)}
		out, errs, code := l.output(t)
		if out += errs; code == 0 || !strings.Contains(out, k.want) || strings.Contains(out, "=short") {
			t.Errorf("%v %s: exit code %d\n%s", k.args, k.env, code, out)
		}
	}
}
