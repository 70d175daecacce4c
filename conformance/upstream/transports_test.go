//go:build linux

package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
)

// listening starts a server and returns the address that it writes to standard error.
func listening(t *testing.T, cmd *exec.Cmd, address string) string {
	t.Helper()
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	expect.Must(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	found := regexp.MustCompile(address)
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		if at := found.FindString(lines.Text()); at != "" {
			go func() { _, _ = io.Copy(io.Discard, errs) }() // ends with the server
			return at
		}
	}
	t.Fatal("the server does not say where it listens")
	return ""
}

// fixtureServer starts the fixture and returns its URL.
func fixtureServer(t *testing.T) string {
	t.Helper()
	path := built.Program(t, "conformance/fixture")
	cmd := exec.CommandContext(t.Context(), path, "-http", "127.0.0.1:0", "-store", t.TempDir())
	return listening(t, cmd, `http://127\.0\.0\.1:\d+`)
}

// session opens a session with a server at a URL. What the server sends of its own goes to heard. Requests of the
// server get the replies of a client.
func session(t *testing.T, url string) (r *mcpclient.Remote, heard chan string) {
	t.Helper()
	heard = make(chan string, 100)
	r = expect.Value(mcpclient.Endpoint{URL: url}.Open(slog.New(slog.DiscardHandler), mcpclient.Handler{
		Notify: func(method string, params json.RawMessage) { heard <- method + string(params) },
		Request: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			switch method {
			case "sampling/createMessage":
				return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"sampled 42"}}`), nil
			case "elicitation/create":
				return json.RawMessage(`{"action":"accept","content":{"username":"ann","email":"a@b.c"}}`), nil
			case "roots/list":
				return json.RawMessage(`{"roots":[]}`), nil
			}
			return nil, errors.New("unexpected: " + method)
		},
	}))(t)
	t.Cleanup(r.Close)
	return r, heard
}

func initialize(t *testing.T, r *mcpclient.Remote) {
	t.Helper()
	_, err := r.Call(t.Context(), "initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":`+
		`{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"t","version":"1"}}`), nil)
	if err == nil {
		err = r.Notify("notifications/initialized", json.RawMessage("{}"))
	}
	expect.Must(t, err)
}

// calls is a table of calls: method, params, and what the result contains.
type calls [][3]string

func (all calls) run(t *testing.T, r *mcpclient.Remote) {
	t.Helper()
	for _, c := range all {
		progress := 0
		got, err := r.Call(t.Context(), c[0], json.RawMessage(c[1]), func(json.RawMessage) { progress++ })
		expect.Has(t, string(got)+errorText(err), c[2], "%s %s", c[0], c[1])
		expect.Equal(t, strings.Contains(c[1], "progress"), progress > 1, "%s %s: %d times progress", c[0], c[1], progress)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Our own server in the stateless era: names that are not ASCII, headers of arguments, and a subscription.
func TestStatelessOverHTTP(t *testing.T) {
	inParallel(t)
	r, heard := session(t, fixtureServer(t)+"/mcp")
	meta := statelessMeta("{}")
	calls{
		{"server/discover", `{` + meta + `}`, "supportedVersions"},
		{"tools/call", `{"name":"test_simple_text","arguments":{},` + meta + `}`, `"text"`},
		{"tools/call", `{"name":"no such tööl","arguments":{},` + meta + `}`, `no such tööl`},
		{"resources/read", `{"uri":"test://static-text",` + meta + `}`, "content of the static text"},
		{"tools/call", `{"name":"test_tool_with_progress","arguments":{},` + meta + `}`, "done"},
		{"tools/call", `{"name":"test_custom_headers","arguments":{"region":"Köln"},` + meta + `}`, "header mismatch"},
		{"no/such", `{` + meta + `}`, "no/such"},
	}.run(t, r)
	params := json.RawMessage(`{"name":"test_custom_headers","arguments":{"region":"Köln"},` + meta + `}`)
	tool := json.RawMessage(`{"inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`)
	ctx := mcpclient.WithHeaders(t.Context(), mcpclient.ParamHeaders(tool, params))
	expect.Has(t, string(expect.Value(r.Call(ctx, "tools/call", params, nil))(t)), "ok", "with its header")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := r.Call(ctx, "subscriptions/listen",
			json.RawMessage(`{"notifications":{"resourcesListChanged":true},`+meta+`}`), nil)
		ended <- err
	}()
	expect.Contains(t, <-heard, "notifications/subscriptions/acknowledged")
	cancel()
	expect.ErrorIs(t, <-ended, context.Canceled, "a subscription")
	calls{{"server/discover", `{` + meta + `}`, "supportedVersions"}}.run(t, r)
}

// Both HTTP transports of the reference server.
func TestNodeTransports(t *testing.T) {
	for _, transport := range []string{"streamableHttp", "sse"} {
		words := nodeServer(t, "@modelcontextprotocol/server-everything", transport)
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only to find a free port
		expect.Must(t, err)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		_ = l.Close()
		cmd.Env = append(os.Environ(), "PORT="+port)
		listening(t, cmd, "(?i)(listening|running) on port "+port)
		path := map[string]string{"streamableHttp": "/mcp", "sse": "/sse"}[transport]
		r, heard := session(t, "http://127.0.0.1:"+port+path)
		initialize(t, r)
		calls{
			{"tools/call", `{"name":"echo","arguments":{"message":"hi"}}`, "hi"},
			{"tools/call", `{"name":"trigger-sampling-request","arguments":{"prompt":"p","maxTokens":5}}`, "sampled 42"},
			{"tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":0.4,"steps":2},` +
				`"_meta":{"progress":true}}`, "completed"},
			{"resources/read", `{"uri":"demo://resource/static/document/features.md"}`, "contents"},
			{"tools/call", `{"name":"toggle-simulated-logging","arguments":{}}`, "Started"},
		}.run(t, r)
		for h := ""; !strings.Contains(h, "-level"); { // a log message on the stream of the server's own messages
			h = <-heard
		}
	}
}
