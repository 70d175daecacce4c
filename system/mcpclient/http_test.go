package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// incoming is a message as a server gets it.
type incoming struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
}

// served returns a session with a server whose POSTs are answered by post, and GETs by get.
func served(t *testing.T, handler Handler, post func(http.ResponseWriter, *http.Request, incoming),
	get http.HandlerFunc,
) (*Remote, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			if r.Method == http.MethodGet && get != nil {
				get(w, r)
			} else {
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
			return
		}
		var m incoming
		expect.OK(t, json.NewDecoder(r.Body).Decode(&m), "a message")
		post(w, r, m)
	}))
	r := expect.Value(Endpoint{URL: s.URL + "/mcp?key=planted", Headers: map[string]string{"X-Key": "planted"}}.Open(
		slog.New(slog.DiscardHandler), handler))(t)
	t.Cleanup(func() { r.Close(); s.CloseClientConnections(); s.Close() })
	return r, s
}

// say writes an answer, and sends it on its way.
func say(w http.ResponseWriter, kind, format string, args ...any) {
	w.Header().Set("Content-Type", kind)
	_, _ = fmt.Fprintf(w, format, args...)
	_ = http.NewResponseController(w).Flush()
}

const (
	asJSON   = "application/json"
	asEvents = "text/event-stream; charset=utf-8"
)

// A fault of a server ends its call with a clear error that names no key, and is sent nothing twice.
func TestFaultsOfRemotes(t *testing.T) {
	var leaked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Add(1) }))
	defer elsewhere.Close()
	tooLong := func(w io.Writer) {
		block := []byte(strings.Repeat("x", 1<<20))
		for range maxFrame>>20 + 1 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	const response = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		ended  bool
	}{
		"HTML":      {func(w http.ResponseWriter, _ *http.Request) { say(w, "text/html", "<html>") }, "not as an MCP server", false},
		"nothing":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }, "not as an MCP server", false},
		"no answer": {func(w http.ResponseWriter, _ *http.Request) { say(w, asEvents, ": hello\n\n") }, "before the response", false},
		"half an event": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, asEvents, "data: %s\n", response)
		}, "before the response", false},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			say(w, asJSON, "%s", response[:20])
		}, "unexpected EOF", false},
		"another id": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, asJSON, `{"jsonrpc":"2.0","id":7,"result":{}}`)
		}, "no response to the request", false},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "redirects to another host", false},
		"a page": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, "redirects to a page", false},
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "it wants an authorization", false},
		"429": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "slow down", http.StatusTooManyRequests) }, `429 Too Many Requests: "slow`, false},
		"404": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no page", 404) }, "404 Not Found", false},
		"502": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no server", http.StatusBadGateway) }, "502 Bad Gateway", true},
		"400 with a response": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", asJSON)
			w.WriteHeader(400)
			say(w, asJSON, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"another version"}}`)
		}, "another version", false},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
		}, "cannot be reached", false},
		"long event": {func(w http.ResponseWriter, _ *http.Request) {
			say(w, asEvents, "data: ")
			tooLong(w)
		}, "over 256 MiB", false},
		"long answer": {func(w http.ResponseWriter, _ *http.Request) { say(w, asJSON, " "); tooLong(w) }, "over 256 MiB", false},
	} {
		var posts atomic.Int32
		r, _ := served(t, Handler{}, func(w http.ResponseWriter, r *http.Request, _ incoming) {
			posts.Add(1)
			c.answer(w, r)
		}, nil)
		_, err := r.Call(t.Context(), "x", json.RawMessage("{}"), nil)
		text := fmt.Sprint(err)
		if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, "planted") || posts.Load() != 1 {
			t.Errorf("%s: %d posts: %v", name, posts.Load(), err)
		}
		expect.Equal(t, r.session.Err() != nil, c.ended, "%s: the session has ended", name)
	}
	if leaked.Load() > 0 {
		t.Error("a request went to another host")
	}
}

// The session of initialize is named until the server has forgotten it. Calls that are running go on.
func TestSessionOfRemote(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{})
	r, _ := served(t, Handler{}, func(w http.ResponseWriter, r *http.Request, m incoming) {
		have := r.Header.Get("Mcp-Session-Id") + "/" + r.Header.Get("Mcp-Protocol-Version") + "/" + r.Header.Get("X-Key")
		switch want := "s1/2025-06-18/planted"; {
		case m.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s1")
			say(w, asJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18"}}`, m.ID)
		case have != want:
			t.Errorf("%s: %s", m.Method, have)
		case m.Method == "slow":
			say(w, asEvents, ": wait\n\n")
			close(began)
			<-release
			say(w, asEvents, "event: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\"result\":[1.0]}\r\n\r\n", m.ID)
		case m.Method == "gone":
			http.Error(w, "no such session", http.StatusNotFound)
		}
	}, nil)
	expect.Value(r.Call(t.Context(), "initialize", json.RawMessage("{}"), nil))(t)
	slow := make(chan string)
	go func() {
		result, err := r.Call(context.WithoutCancel(t.Context()), "slow", json.RawMessage("{}"), nil)
		slow <- fmt.Sprint(string(result), err)
	}()
	<-began
	for _, method := range []string{"gone", "after the end"} {
		expect.Fails(t, expect.Err(r.Call(t.Context(), method, json.RawMessage("{}"), nil)), "404", method)
		<-r.Ended()
	}
	r.Close()
	close(release)
	expect.Equal(t, <-slow, "[1.0]<nil>", "the running call")
}

// A server says in many ways that it has lost the session; other errors leave it. A cookie is sent back.
func TestLostSession(t *testing.T) {
	fault := func(code int, message string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`, code, message)
	}
	for text, lost := range map[string]bool{
		"410 gone": true, "404 gone": true, "401 who are you": true, "403 no": false, "429 later": false, "503 down": true,
		"400 no such session": true, "400 bad": false,
		"200 " + fault(-32001, "Session not found"):                  true,
		"200 " + fault(-32000, "Bad Request: No valid session ID"):   true,
		"200 " + fault(-32600, "Invalid session"):                    true,
		"200 " + fault(-32000, "Server not initialized"):             true,
		"200 " + fault(-32602, "unknown session of the browser"):     false,
		"200 " + fault(-32000, "the table sessions has no such row"): false,
	} {
		r, _ := served(t, Handler{}, func(w http.ResponseWriter, r *http.Request, m incoming) {
			if m.Method == "initialize" {
				w.Header().Set("Mcp-Session-Id", "s1")
				w.Header().Set("Set-Cookie", "lb=1; Path=/; HttpOnly")
				say(w, asJSON, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18"}}`, m.ID)
				return
			}
			if c, err := r.Cookie("lb"); err != nil || c.Value != "1" {
				t.Errorf("cookies: %v", r.Cookies())
			}
			status, body, _ := strings.Cut(text, " ")
			n, _ := strconv.Atoi(status)
			w.Header().Set("Content-Type", asJSON)
			w.WriteHeader(n)
			_, _ = io.WriteString(w, body)
		}, nil)
		expect.Value(r.Call(t.Context(), "initialize", json.RawMessage("{}"), nil))(t)
		expect.Fails(t, expect.Err(r.Call(t.Context(), "x", json.RawMessage("{}"), nil)), "", "%s: no error", text)
		expect.Equal(t, r.session.Err() != nil, lost, "%s: lost", text)
	}
}

// Lines of events end in LF, CR or CRLF. None waits for what follows its end.
func TestEventLines(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\n\nc\n":               "a|b||c",
		"a\rb\r\rc\r":               "a|b||c",
		"a\r\nb\r\n\r\nc\r\n":       "a|b||c",
		"\ufeffa\n\ufeffb\r\r\nc\n": "a|\ufeffb||c",
		"\r\n\n\ra\n":               "|||a",
		"":                          "",
		"half":                      "",
	} {
		for _, size := range []int{1, 3, 4096} {
			e := &eventLines{in: bufio.NewReader(&dribble{text, size})}
			var all []string
			for {
				line, err := e.next(1000)
				if err != nil {
					break
				}
				all = append(all, string(line))
			}
			expect.Equal(t, strings.Join(all, "|"), want, "%q by %d", text, size)
		}
	}
	in, out := io.Pipe()
	defer out.Close() //nolint:errcheck // a pipe
	e := &eventLines{in: bufio.NewReader(in)}
	go io.WriteString(out, "data: x\r\r") //nolint:errcheck // the reader would miss it
	for _, want := range []string{"data: x", ""} {
		if line, err := e.next(1000); err != nil || string(line) != want {
			t.Errorf("%q, %v", line, err)
		}
	}
}

// dribble reads a text in parts of a size.
type dribble struct {
	text string
	size int
}

func (d *dribble) Read(b []byte) (int, error) {
	if d.text == "" {
		return 0, io.EOF
	}
	n := copy(b, d.text[:min(d.size, len(d.text))])
	d.text = d.text[n:]
	return n, nil
}

// A stream that breaks before its response is resumed where it broke, but no call is sent twice.
func TestResume(t *testing.T) {
	var posts, gets atomic.Int32
	heard := make(chan string, 10)
	r, _ := served(t, Handler{Notify: func(method string, _ json.RawMessage) { heard <- method }},
		func(w http.ResponseWriter, _ *http.Request, m incoming) {
			posts.Add(1)
			say(w, asEvents, "id: %s-0\nretry: 1\ndata:\n\nid: lost\ndata: half", m.Method)
		}, func(w http.ResponseWriter, r *http.Request) {
			gets.Add(1)
			switch last := r.Header.Get("Last-Event-ID"); last {
			case "works-0":
				say(w, asEvents, "id: works-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"heard\"}\n\n")
			case "works-1":
				say(w, asEvents, "id: works-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
			case "refuses-0":
				http.Error(w, "no", http.StatusBadRequest)
			case "never-0":
				say(w, asEvents, ": nothing\n\n")
			default:
				t.Errorf("resumed at %q", last)
			}
		})
	expect.Equal(t, string(expect.Value(r.Call(t.Context(), "works", json.RawMessage("{}"), nil))(t)), "{}")
	if got := <-heard; got != "heard" || gets.Load() != 2 {
		t.Errorf("heard %s, %d GETs", got, gets.Load())
	}
	for method, want := range map[string]int32{"refuses": 1, "never": maxResumes} {
		gets.Store(0)
		_, err := r.Call(t.Context(), method, json.RawMessage("{}"), nil)
		if err == nil || !strings.Contains(err.Error(), "ended before the response") || gets.Load() != want {
			t.Errorf("%s: %d GETs: %v", method, gets.Load(), err)
		}
	}
	expect.Equal(t, posts.Load(), 3, "posts for 3 calls")
}

// The stream of the server's own messages is opened after initialize, and again after it breaks.
func TestOwnStream(t *testing.T) {
	heard, answered := make(chan string, 10), make(chan string, 1)
	r, _ := served(t, Handler{
		Notify: func(method string, _ json.RawMessage) { heard <- method },
		Request: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
			return nil, jsonrpc.Faultf(-7, "not %s", method)
		},
	}, func(w http.ResponseWriter, r *http.Request, m incoming) {
		switch {
		case m.Method == "initialize":
			say(w, asJSON, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case m.Method == "" && m.ID != nil:
			answered <- string(m.ID)
			w.WriteHeader(http.StatusAccepted)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Last-Event-ID") {
		case "":
			say(w, asEvents, "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n")
		case "1":
			say(w, asEvents, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ask\"}\n\n")
			<-r.Context().Done()
		}
	})
	expect.Value(r.Call(t.Context(), "initialize", json.RawMessage("{}"), nil))(t)
	expect.Must(t, r.Notify("notifications/initialized", json.RawMessage("{}")))
	if a, b, c := <-heard, <-heard, <-answered; a+b+c != "onetwo9" {
		t.Errorf("%s %s %s", a, b, c)
	}
}

// A cancelled call is cancelled at the server: by a notification, or in the stateless era by the end of its stream.
func TestCancelledRemoteCall(t *testing.T) {
	for params, stateless := range map[string]bool{
		`{}`: false, `{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`: true,
	} {
		began, cancelled, closed := make(chan http.Header, 1), make(chan bool, 1), make(chan bool, 1)
		r, _ := served(t, Handler{}, func(w http.ResponseWriter, r *http.Request, m incoming) {
			if m.Method == "notifications/cancelled" {
				cancelled <- true
				return
			}
			say(w, asEvents, ": wait\n\n")
			began <- r.Header
			<-r.Context().Done()
			closed <- true
		}, nil)
		region := json.RawMessage(`{"inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}`)
		headers := ParamHeaders(region, json.RawMessage(`{"arguments":{"r":" x"}}`))
		ctx, cancel := context.WithCancel(WithHeaders(t.Context(), headers))
		failed := make(chan error)
		go func() {
			_, err := r.Call(ctx, "tools/call", json.RawMessage(params), nil)
			failed <- err
		}()
		header := <-began
		cancel()
		expect.ErrorIs(t, <-failed, context.Canceled)
		<-closed
		got := [3]string{header.Get("Mcp-Protocol-Version"), header.Get("Mcp-Name"), header.Get("Mcp-Method")}
		want := [3]string{}
		if stateless {
			want = [3]string{"2026-07-28", "=?base64?w6k=?=", "tools/call"}
		} else {
			<-cancelled
		}
		if got != want || header.Get("Mcp-Param-Region") != "=?base64?IHg=?=" || len(cancelled) > 0 {
			t.Errorf("%s: %q, %v", params, got, header)
		}
	}
}

// The older transport is used if the server names its endpoint on the same host.
func TestOlderTransport(t *testing.T) {
	for name, c := range map[string]struct{ first, want string }{
		"works":           {"event: endpoint\ndata: /post?s=1\n\n", ""},
		"another host":    {"event: endpoint\ndata: http://example.com/post\n\n", "endpoint on another host"},
		"another port":    {"event: endpoint\ndata: http://127.0.0.1:1/post\n\n", "endpoint on another host"},
		"other event":     {"event: message\ndata: /post?s=1\n\n", "405 Method Not Allowed"},
		"no event":        {": nothing\n\n", "405 Method Not Allowed"},
		"no address":      {"event: endpoint\ndata: http://[\n\n", "405 Method Not Allowed"},
		"host in a plain": {"event: endpoint\ndata: //example.com/post\n\n", "endpoint on another host"},
	} {
		events := make(chan string, 4)
		r, _ := served(t, Handler{}, func(w http.ResponseWriter, r *http.Request, m incoming) {
			switch {
			case r.URL.Path == "/mcp":
				w.WriteHeader(http.StatusMethodNotAllowed)
			case r.Header.Get("X-Key") != "planted":
				t.Errorf("%s: no header", name)
			default:
				w.WriteHeader(http.StatusAccepted)
				events <- fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", m.ID)
			}
		}, func(w http.ResponseWriter, _ *http.Request) {
			say(w, asEvents, "%s", c.first)
			if c.want == "" {
				for range 2 {
					say(w, asEvents, "%s", <-events)
				}
			}
		})
		_, err := r.Call(t.Context(), "initialize", json.RawMessage("{}"), nil)
		if c.want == "" {
			if err == nil {
				_, err = r.Call(t.Context(), "x", json.RawMessage("{}"), nil)
			}
			expect.OK(t, err, name)
			<-r.Ended() // with its stream
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
