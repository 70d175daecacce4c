//go:build linux

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// serveHTTP starts this program over HTTP and returns its URL.
func serveHTTP(t *testing.T, token, root string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "--store", t.TempDir(), "--min-free", "0", "--root", root,
		"serve", "--http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "MCP_FUNNEL_TOKEN="+token)
	return "http://" + listening(t, cmd, `127\.0\.0\.1:\d+`) + "/mcp"
}

func remote(store, url string, flags ...string) []string {
	words := wrapped(store, url)
	at := slices.Index(words, "wrap")
	return slices.Concat(words[:at+1], flags, words[at+1:])
}

// A server at a URL is wrapped like a command: names that clash get its name, small answers are the same bytes.
func TestRemote(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/a.txt", "one\ntwo\n")
	const token = "0123456789abcdef0123456789abcdef"
	url := serveHTTP(t, token, root)
	t.Setenv("REMOTE_TOKEN", token)
	c := start(t, remote(t.TempDir(), url, "--header", "Authorization=Bearer ${REMOTE_TOKEN}")...)
	list := names(t, c.request("tools/list", "{}"))
	if !slices.Contains(list, "127-0-0-1_search") || !slices.Contains(list, "read") {
		t.Errorf("tools: %q", list)
	}
	expect.Contains(t, c.call("read", `{"path":"a.txt"}`), `one\ntwo`)
	expect.Contains(t, c.call("127-0-0-1_search", `{"pattern":"two"}`), "a.txt")
}

// A server that cannot be used is one clear error, and no key is in it.
func TestUnusableRemotes(t *testing.T) {
	inParallel(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		}, "not as an MCP server does"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\n")
		}, "ended before the response"},
	} {
		s := httptest.NewServer(c.answer)
		words := remote(t.TempDir(), s.URL+"/mcp?key=planted", "--header", "X-Key=planted")
		answer, log := refused(t, words)
		if !strings.Contains(answer, c.want) || strings.Contains(answer+log, "planted") {
			t.Errorf("%s: %s\n%s", name, answer, log)
		}
		s.Close()
	}
	answer, _ := refused(t, remote(t.TempDir(), "http://127.0.0.1:1/mcp"))
	expect.Contains(t, answer, "cannot be reached")
	for _, words := range [][]string{
		remote(t.TempDir(), "ftp://host/mcp"),
		remote(t.TempDir(), "http://127.0.0.1:1/mcp", "--header", "A=${NO_SUCH_VARIABLE}"),
	} {
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", fmt.Sprint(words), out)
		}
	}
}
