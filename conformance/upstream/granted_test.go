//go:build linux

package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// plantedNames are names of variables that hold secrets, and names that resemble those that every server gets.
var plantedNames = []string{
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "OPENAI_API_KEY",
	"ANTHROPIC_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "NPM_TOKEN", "PYPI_TOKEN",
	"DATABASE_URL", "PGPASSWORD", "REDIS_URL", "SSH_AUTH_SOCK", "KUBECONFIG", "VAULT_TOKEN", "SLACK_BOT_TOKEN",
	"STRIPE_SECRET_KEY", "SENTRY_AUTH_TOKEN", "HTTPS_PROXY", "http_proxy", "DOCKER_AUTH_CONFIG", "NETRC",
	"CONTEXT_KEY", "MCP_FUNNEL_TOKEN", "PATH_SECRET", "HOMEPAGE", "USERNAME", "USER_KEY", "LANGUAGE",
	"LANG_KEY", "TZ_KEY", "TMPDIR_KEY", "LCX", "LC", "lc_all", "path", "home", "Path", "PLANTED_ONE", "PLANTED_TWO",
}

// planted returns variables with values that tell them apart.
func planted() (variables []string) {
	for i, name := range plantedNames {
		variables = append(variables, fmt.Sprintf("%s=planted-%02d-0123456789abcdef", name, i))
	}
	return variables
}

// seen returns the names of the planted variables whose values a text has.
func seen(text string) (all []string) {
	for _, v := range planted() {
		name, value, _ := strings.Cut(v, "=")
		if strings.Contains(text, value) {
			all = append(all, name)
		}
	}
	return all
}

// flagged puts flags of this program and of wrap into a command of [wrapped].
func flagged(words, ours, ofWrap []string) []string {
	at := slices.Index(words, "wrap")
	return slices.Concat(words[:1], ours, words[1:at+1], ofWrap, words[at+1:])
}

// started starts a server with an environment of its own.
func started(t *testing.T, environment, command []string) *client {
	t.Helper()
	return start(t, slices.Concat([]string{"/usr/bin/env", "-i"}, environment, command)...)
}

// withPlanted returns the environment of a client that holds secrets for several servers.
func withPlanted() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_TIME=C"}, planted()...)
}

// TestS28ServersGetNoSecret plants secrets in the environment of wrap and looks at what a server has: variables,
// arguments and open files. Only what --env names reaches it, and the log has names, no values. In the control the
// client starts the same server itself.
func TestS28ServersGetNoSecret(t *testing.T) {
	inParallel(t)
	proof := promise.Proof{Promise: "S28", Figures: fmt.Sprintf("%d variables", len(plantedNames))}
	for _, granted := range [][]string{
		nil, {"PLANTED_ONE"}, {"PLANTED_ONE", "PLANTED_TWO"}, {"PLANTED"}, {"NO_SUCH_VARIABLE"}, {"*"}, {"planted_one"},
	} {
		var flags []string
		for _, name := range granted {
			flags = append(flags, "--env", name)
		}
		for _, fault := range []string{"environment", "environment, modern"} {
			words := flagged(wrapped(t.TempDir(), sick(fault, "")...), []string{"--log-level", "debug"}, flags)
			c := started(t, withPlanted(), words)
			got := c.call("echo", "{}")
			c.end()
			want := slices.DeleteFunc(slices.Clone(granted), func(name string) bool {
				return !slices.Contains(plantedNames, name)
			})
			proof.Cases += len(plantedNames) + 2
			for _, name := range plantedNames {
				if slices.Contains(seen(got), name) != slices.Contains(want, name) {
					proof.Failures++
					t.Errorf("--env %q: %s reached it, or not: %s", granted, name, got)
				}
			}
			if !strings.Contains(got, "LC_TIME=C") || strings.Contains(got, "open: ") {
				proof.Failures++
				t.Errorf("--env %q: %s", granted, got)
			}
			if log := c.errs.String(); len(seen(log)) > 0 || !strings.Contains(log, "GITHUB_TOKEN") {
				proof.Failures++
				t.Errorf("--env %q: the log has values, or no names: %s", granted, log)
			}
		}
	}
	c := started(t, withPlanted(), sick("environment", ""))
	proof.Control = len(seen(c.call("echo", "{}")))
	promise.Kept(t, proof)
}

// captured is a server at a URL that keeps the headers of all requests.
type captured struct {
	*httptest.Server
	mu  sync.Mutex
	all bytes.Buffer
}

// capture starts a server that answers as the handler does.
func capture(t *testing.T, answer http.HandlerFunc) *captured {
	t.Helper()
	c := &captured{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what came of it
		c.mu.Lock()
		fmt.Fprintln(&c.all, r.URL, r.Header, string(body))
		c.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *captured) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

// answerMCP answers requests as a small server does; its tool returns a text.
func answerMCP(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		quoted, _ := json.Marshal(text) // a string
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"r","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":` + string(quoted) + `}]}`,
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
			return
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

// TestS28HeadersGoToTheirHostOnly captures what a server at a URL gets, and what the hosts get that it points to: by
// each status of a redirect, in one and two steps, and by the places that an answer 401 names. The control is Go's own
// client, which follows redirects.
func TestS28HeadersGoToTheirHostOnly(t *testing.T) {
	proof := promise.Proof{Promise: "S28"}
	fail := func(format string, args ...any) {
		proof.Failures++
		t.Errorf(format, args...)
	}
	key := seenValue("PLANTED_ONE")
	connect := func(url string) (string, error) {
		headers := []string{"--header", "X-Key=${PLANTED_ONE}", "--header", "Authorization=Bearer ${PLANTED_ONE}"}
		words := slices.Concat([]string{"-i"}, withPlanted(),
			flagged(wrapped(t.TempDir(), url), []string{"--log-level", "debug"}, headers))
		cmd := exec.CommandContext(t.Context(), "/usr/bin/env", words...)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + hello + "}\n")
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), `"error"`) {
			err = errors.New("initialize is refused")
		}
		return string(out), err
	}

	good := capture(t, answerMCP("fine"))
	out, err := connect(good.URL + "/mcp?key=" + seenValue("PLANTED_TWO"))
	got := good.text()
	if err != nil || strings.Count(got, key) < 4 {
		fail("%v: %s: %s", err, out, got)
	}
	proof.Cases += len(plantedNames) + 1
	if names := seen(got); !slices.Equal(names, []string{"PLANTED_ONE", "PLANTED_TWO"}) { // the header, and its own URL
		fail("the server got %q", names)
	}
	if names := seen(out); len(names) > 0 {
		fail("the log has the values of %q: %s", names, out)
	}

	for _, status := range []int{301, 302, 303, 307, 308, 401, 403} {
		for _, steps := range []int{1, 2} {
			elsewhere := capture(t, answerMCP("elsewhere"))
			target := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
			var at string
			first := capture(t, func(w http.ResponseWriter, r *http.Request) {
				if steps == 2 && r.URL.Path == "/mcp" {
					http.Redirect(w, r, at+"/more", http.StatusTemporaryRedirect)
					return
				}
				w.Header().Set("Location", target)
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+target+`/.well-known/oauth-protected-resource"`)
				w.WriteHeader(status)
			})
			at = first.URL
			proof.Cases++
			out, err := connect(first.URL + "/mcp")
			if err == nil || elsewhere.text() != "" || len(seen(out)) > 0 {
				fail("%d in %d steps: %v: another host got %q: %s", status, steps, err, elsewhere.text(), out)
			}
			if request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, first.URL+"/mcp",
				strings.NewReader("{}")); err == nil {
				request.Header.Set("X-Key", key)
				if response, err := http.DefaultClient.Do(request); err == nil {
					_ = response.Body.Close()
				}
			}
			proof.Control += strings.Count(elsewhere.text(), key)
		}
	}
	proof.Figures = "headers and bodies of a server at a URL, and of the hosts it points to; control: Go's own client"
	promise.Kept(t, proof)
}

// seenValue returns the value of a planted variable.
func seenValue(name string) string {
	for _, v := range planted() {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// TestS28EchoedTokensAreMasked grants tokens of known formats to a server that repeats them: in a text, beside a text,
// as an error and on standard error. They are in no answer of a tool and not in the log. The control is --no-mask.
func TestS28EchoedTokensAreMasked(t *testing.T) {
	inParallel(t)
	tokens := map[string]string{
		"GITHUB_TOKEN":      "ghp_" + "0123456789abcdefABCDEF0123456789abcd",
		"SLACK_BOT_TOKEN":   "xoxb-" + "123456789012-123456789012-abcdefABCDEF0123456789ab",
		"STRIPE_SECRET_KEY": "sk_live_" + "0123456789abcdefABCDEF01",
		"NPM_TOKEN":         "npm_" + "0123456789abcdefABCDEF0123456789abcd",
	}
	try := func(failure func(format string, args ...any), ours ...string) (cases int) {
		for name, token := range tokens {
			words := flagged(wrapped(t.TempDir(), sick("tells its secrets", "")...),
				append(ours, "--log-level", "debug"), []string{"--env", name})
			c := started(t, append(withPlanted(), name+"="+token), words)
			for what, result := range map[string]string{
				"text":       `{"content":[{"type":"text","text":"` + token + `"}]}`,
				"structured": `{"content":[{"type":"text","text":"ok"}],"structuredContent":{"t":"` + token + `"}}`,
				"error":      `{"content":[{"type":"text","text":"no: ` + token + `"}],"isError":true}`,
				"large":      `{"content":[{"type":"text","text":"` + strings.Repeat(token+` line\n`, 200) + `"}]}`,
				"escaped":    `{"content":[{"type":"text","text":"\u00` + fmt.Sprintf("%x", token[0]) + token[1:] + `"}]}`,
			} {
				cases++
				if got := c.call("raw", `{"result":`+result+`}`); strings.Contains(got, token) {
					failure("%s, %s: %.300s", name, what, got)
				}
			}
			cases += 2
			if got := c.call("fault", `{}`); strings.Contains(got, token) {
				failure("%s, JSON-RPC error: %.300s", name, got)
			}
			c.end()
			if log := c.errs.String(); strings.Contains(log, token) {
				failure("%s, log: %s", name, log)
			}
		}
		return cases
	}
	proof := promise.Proof{Promise: "S28"}
	proof.Cases = try(func(format string, args ...any) {
		proof.Failures++
		t.Errorf(format, args...)
	})
	try(func(string, ...any) { proof.Control++ }, "--no-mask")
	proof.Figures = fmt.Sprintf("%d formats of tokens, repeated in 7 places; control: --no-mask", len(tokens))
	promise.Kept(t, proof)
}
