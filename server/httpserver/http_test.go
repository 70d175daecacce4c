package httpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

const (
	testToken  = "0123456789abcdef0123456789abcdef"
	otherToken = "fedcba9876543210fedcba9876543210"
)

// webServer is a server on loopback in this process.
type webServer struct {
	t    testing.TB
	url  string
	addr string
	http *http.Client
	stop context.CancelFunc
	ends chan error
}

func serveWeb(t testing.TB, s *server.Server, change ...func(*Options)) *webServer {
	t.Helper()
	l := expect.Value(Listen(t.Context(), "127.0.0.1:0", false))(t)
	o := Options{Identities: map[string]string{testToken: "local", otherToken: "other"}, SSE: true}
	for _, c := range change {
		c(&o)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // until close
	w := &webServer{
		t: t, addr: l.Addr().String(), url: "http://" + l.Addr().String(), stop: stop, ends: make(chan error, 1),
	}
	w.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	go func() { w.ends <- Serve(ctx, s, l, o) }()
	t.Cleanup(w.close)
	return w
}

// close ends the server, and fails where it takes its time.
func (w *webServer) close() {
	w.stop()
	w.http.CloseIdleConnections()
	select {
	case err := <-w.ends:
		expect.OK(w.t, err, "Serve")
		w.ends <- nil // close may be called again
	case <-time.After(5 * time.Minute):
		w.t.Error("the server did not end in time")
	}
}

// with changes a request.
type with func(*http.Request)

func header(name, value string) with { return func(r *http.Request) { r.Header.Set(name, value) } }

func as(token string) with { return header("Authorization", "Bearer "+token) }

func (w *webServer) request(ctx context.Context, method, path, body string, change ...with) (*http.Response, error) {
	w.t.Helper()
	r := expect.Value(http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body)))(w.t)
	as(testToken)(r)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, c := range change {
		c(r)
	}
	return w.http.Do(r)
}

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	events []string // their data, in order, where it is a stream
}

// last is the answer itself: the body, or the last event.
func (r reply) last() string {
	if len(r.events) > 0 {
		return r.events[len(r.events)-1]
	}
	return r.body
}

// is checks the status of an answer, and that the answer contains these texts.
func (r reply) is(t testing.TB, status int, want ...string) {
	t.Helper()
	expect.Equal(t, r.status, status, "status, %+v", r)
	expect.Contains(t, r.last(), want...)
}

func (w *webServer) do(method, path, body string, change ...with) reply {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer stop()
	res, err := w.request(ctx, method, path, body, change...)
	expect.Must(w.t, err, "%s %s", method, path)
	defer func() { _ = res.Body.Close() }()
	got := reply{status: res.StatusCode, header: res.Header}
	if res.Header.Get("Content-Type") == "text/event-stream" {
		for e := range eventsOf(res.Body) {
			got.events = append(got.events, e.data)
		}
		return got
	}
	all, err := io.ReadAll(res.Body)
	expect.OK(w.t, err, "%s %s", method, path)
	got.body = string(all)
	return got
}

func (w *webServer) post(message string, change ...with) reply {
	w.t.Helper()
	return w.do(http.MethodPost, "/mcp", message, change...)
}

// open begins a session and returns what names it.
func (w *webServer) open(change ...with) with {
	w.t.Helper()
	got := w.post(servertest.Initialize, change...)
	id := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || id == "" {
		w.t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	session := header("Mcp-Session-Id", id)
	if got := w.post(
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, append(change, session)...,
	); got.status != http.StatusAccepted || got.body != "" {
		w.t.Fatalf("initialized: %d %s", got.status, got.body)
	}
	return session
}

type event struct{ name, data string }

// eventsOf reads a stream of events as browsers do.
func eventsOf(body io.Reader) func(func(event) bool) {
	return func(yield func(event) bool) {
		lines := bufio.NewReaderSize(body, 64<<10)
		var e event
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimRight(line, "\r\n")
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "" && e.data != "":
				if !yield(e) {
					return
				}
				e = event{}
			case name == "event":
				e.name = value
			case name == "data":
				e.data += value
			}
		}
	}
}

func TestHTTPSession(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := serveWeb(t, newTestServer(t))
	defer w.close()
	session := w.open()
	w.post(servertest.ToolCall("1", "say", `{"text":"x"}`, ""), session).is(t, http.StatusOK, `"text":"x"`)
	// What is told before the answer makes a stream of it.
	got := w.post(servertest.ToolCall("2", "steps", `{"n":3}`, `,"_meta":{"progressToken":"p"}`), session)
	if len(got.events) < 2 || !strings.Contains(got.last(), `"text":"done"`) ||
		!strings.Contains(got.events[0], `"progress":1`) {
		t.Errorf("%+v", got)
	}
	for _, k := range []struct {
		name    string
		message string
		change  []with
		status  int
		want    string
	}{
		{"no session", servertest.ToolCall("1", "say", `{"text":"x"}`, ""), nil, http.StatusBadRequest, "Mcp-Session-Id"},
		{"unknown session", servertest.ToolCall(
			"1", "say", `{"text":"x"}`, "",
		), []with{header("Mcp-Session-Id", "x")}, http.StatusNotFound, `"id":1`},
		{"not JSON", `{`, []with{session}, http.StatusBadRequest, "-32700"},
		{"unknown version", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []with{
			session, header("Mcp-Protocol-Version", "2001-01-01"),
		}, http.StatusBadRequest, "2025-11-25"},
		{"ping", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []with{
			session, header("Mcp-Protocol-Version", "2025-06-18"),
		}, http.StatusOK, `"result":{}`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"x"}`, []with{session}, http.StatusOK, "-32601"},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, []with{session}, http.StatusAccepted, ""},
		{"response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []with{session}, http.StatusAccepted, ""},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, []with{session}, http.StatusOK, "has batches"},
		{"nothing acceptable", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []with{
			session, header("Accept", "text/html"),
		}, http.StatusNotAcceptable, "Accept"},
	} {
		if got := w.post(k.message, k.change...); got.status != k.status || !strings.Contains(got.last(), k.want) ||
			k.want == "" && got.body != "" {
			t.Errorf("%s: %d %s", k.name, got.status, got.last())
		}
	}
	if got := w.post(
		servertest.ToolCall("2", "steps", `{"n":3}`, `,"_meta":{"progressToken":"p"}`), session,
		header("Accept", "application/json"),
	); len(got.events) != 0 || !strings.Contains(got.body, "done") {
		t.Errorf("JSON only: %+v", got)
	}
	if got := w.post(
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, session, header("Accept", "text/event-stream"),
	); len(got.events) != 1 {
		t.Errorf("stream only: %+v", got)
	}
	w.do(http.MethodDelete, "/mcp", "", session).is(t, http.StatusNoContent)
	w.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, session).is(t, http.StatusNotFound)
}

// TestOptionsOfTheServer has the guard decide on OPTIONS *, which is of no path.
func TestOptionsOfTheServer(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	for _, k := range []struct{ host, headers, want string }{
		{"evil.example", "", "403"},
		{"localhost", "", "401"},
		{"localhost", "Origin: https://evil.example\r\nAccess-Control-Request-Method: POST\r\n", "403"},
		{"localhost", "Authorization: Bearer " + testToken + "\r\n", "404"},
	} {
		var d net.Dialer
		c := expect.Value(d.DialContext(t.Context(), "tcp", w.addr))(t)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(c, "OPTIONS * HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", k.host, k.headers)
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 "+k.want+" ") {
			t.Errorf("%+v: %v %q", k, err, text)
		}
		_ = c.Close()
	}
}

// TestMalformedChunks sends chunks whose length is none.
func TestMalformedChunks(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	if got := w.posted(
		"Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n",
	); !strings.HasPrefix(got, "HTTP/1.1 400 ") || !strings.Contains(got, "the chunked body is malformed") {
		t.Errorf("%q", got)
	}
}

// TestTwoLengths has a second request hide in what one of the two lengths leaves over.
func TestTwoLengths(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(servertest.Initialize), servertest.Initialize)
	hidden := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	got := w.posted(
		fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n", len(chunks)+len(hidden)), chunks+hidden,
	)
	expect.Equal(t, strings.Count(got, "HTTP/1.1 "), 1)
	expect.Contains(t, got, "Connection: close\r\n")
}

// TestTwoVersions sends the header twice, in each era.
func TestTwoVersions(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	session := w.open()
	message, change := modern("tools/list", "", "")
	for _, k := range []struct {
		version, message string
		change           []with
	}{
		{"2025-06-18", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, []with{session}},
		{"2025-06-18", servertest.Initialize, nil},
		{"2026-07-28", message, change},
	} {
		got := w.post(
			k.message,
			append(k.change, func(r *http.Request) { r.Header["Mcp-Protocol-Version"] = []string{k.version, k.version} })...,
		)
		expect.Equal(t, got.status, http.StatusBadRequest, "%s: %+v", k.version, got)
		expect.Has(t, got.body, "2 MCP-Protocol-Version headers", "%s: %+v", k.version, got)
	}
}

// posted sends to /mcp a message with these headers besides what every message has, and reads until the server closes.
func (w *webServer) posted(headers, body string) string {
	w.t.Helper()
	var d net.Dialer
	c := expect.Value(d.DialContext(w.t.Context(), "tcp", w.addr))(w.t)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = fmt.Fprintf(
		c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n%s",
		testToken, headers, body,
	)
	text, err := io.ReadAll(c)
	expect.OK(w.t, err)
	return string(text)
}

// TestContentEncodings has a coding follow one that is taken.
func TestContentEncodings(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	for want, codings := range map[int][]string{
		http.StatusOK:                   {"identity", "Identity", ""},
		http.StatusUnsupportedMediaType: {"identity", "gzip"},
	} {
		got := w.post(servertest.Initialize, func(r *http.Request) { r.Header["Content-Encoding"] = codings })
		expect.Equal(t, got.status, want, "%q: %+v", codings, got)
	}
}

// TestHTTPBatch is of protocol 2025-03-26, the only one that has batches.
func TestHTTPBatch(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	got := w.post(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
	session := header("Mcp-Session-Id", got.header.Get("Mcp-Session-Id"))
	got = w.post(
		"["+servertest.ToolCall(
			"1", "say", `{"text":"x"}`, "",
		)+`,{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
		session,
	)
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &answers); err != nil || len(answers) != 2 {
		t.Errorf("%v: %+v", err, got)
	}
	w.post(`[{"jsonrpc":"2.0","method":"notifications/x"}]`, session).is(t, http.StatusAccepted)
	got = w.post("["+servertest.ToolCall("1", "steps", `{"n":3}`, `,"_meta":{"progressToken":"p"}`)+"]", session)
	if len(got.events) < 2 || !strings.HasPrefix(got.last(), "[") {
		t.Errorf("%+v", got)
	}
}

// modern is a message of the stateless era with the headers that belong to it.
func modern(method, name, params string) (string, []with) {
	change := []with{header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", method)}
	if name != "" {
		change = append(change, header("Mcp-Name", name))
	}
	return servertest.StatelessRequest(method, params), change
}

func TestHTTPStateless(t *testing.T) {
	w := serveWeb(t, newTestServer(t))
	for _, k := range []struct {
		name                 string
		method, tool, params string
		change               []with
		status               int
		want                 string
	}{
		{"discover", "server/discover", "", "", nil, 200, `"supportedVersions":["2026-07-28"`},
		{"list", "tools/list", "", "", nil, 200, `"ttlMs"`},
		{"call", "tools/call", "say", `"name":"say","arguments":{"text":"hello"}`, nil, 200, "hello"},
		{"call by an encoded name", "tools/call", "=?base64?c2F5?=", `"name":"say","arguments":{"text":"hello"}`, nil, 200, "hello"},
		{"a session is ignored", "tools/call", "say", `"name":"say","arguments":{"text":"hello"}`, []with{
			header("Mcp-Session-Id", "x"),
		}, 200, "hello"},
		{"another name", "tools/call", "sleep", `"name":"say","arguments":{"text":"hello"}`, nil, 400, "-32020"},
		{"no name", "tools/call", "", `"name":"say","arguments":{"text":"hello"}`, nil, 400, "-32020"},
		{"another method", "tools/list", "", "", []with{header("Mcp-Method", "tools/call")}, 400, "-32020"},
		{"another version in the header", "tools/list", "", "", []with{
			header("Mcp-Protocol-Version", "2025-06-18"),
		}, 400, "-32020"},
		{"no version in the header", "tools/list", "", "", []with{
			func(r *http.Request) { r.Header.Del("Mcp-Protocol-Version") },
		}, 400, "-32020"},
		{"unknown method", "x/y", "", "", nil, 404, "-32601"},
		{"ping is gone", "ping", "", "", nil, 404, "-32601"},
		{"a key of the client's", "tools/call", "say", `"name":"say","arguments":{"text":"hello"},"_meta":{}`, nil, 400, "duplicate key"},
	} {
		message, change := modern(k.method, k.tool, k.params)
		if got := w.post(message, append(change, k.change...)...); got.status != k.status ||
			!strings.Contains(got.last(), k.want) || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", k.name, got.status, got.last())
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if got := w.do(
			method, "/mcp", "", header("Mcp-Protocol-Version", "2026-07-28"),
		); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

// TestListenNeedsAStream has a client take JSON alone, in which no change could ever be told.
func TestListenNeedsAStream(t *testing.T) {
	w := serveWeb(t, newTestServer(t, withStore(t)))
	message, change := modern("subscriptions/listen", "", `"notifications":{"resourcesListChanged":true}`)
	got := w.post(message, append(change, header("Accept", "application/json"))...)
	expect.Equal(t, got.status, http.StatusNotAcceptable, "%+v", got)
	expect.Has(t, got.body, "text/event-stream", "%+v", got)
}

// TestHTTPParamHeaders calls a tool with an argument that is to be repeated as a header.
func TestHTTPParamHeaders(t *testing.T) {
	near := tools.Tool{Name: "near", Title: "Near", Description: "Says where.", Schema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
		Run: func(_ context.Context, in tools.Input, out tools.Output) error {
			_, err := out.Write(in.Args)
			return err
		}}
	w := serveWeb(t, newTestServer(t, func(o *server.Options) { o.Tools = append(o.Tools, near) }))
	region := func(value string) []with { return []with{header("Mcp-Param-Region", value)} }
	for _, k := range []struct {
		args   string
		change []with
		status int
	}{
		{`{"region":"east"}`, region("east"), 200},
		{`{"region":"east"}`, region("=?base64?ZWFzdA==?="), 200},
		{`{}`, nil, 200},
		{`{"region":"east"}`, nil, 400},
		{`{"region":"east"}`, region("west"), 400},
		{`{"region":"east"}`, region("=?base64?%?="), 400},
		{`{"region":"east"}`, append(
			region("east"), func(r *http.Request) { r.Header.Add("Mcp-Param-Region", "west") },
		), 400},
		{`{"region":["east"]}`, region("east"), 400},
		{`{}`, region("east"), 400},
	} {
		message, change := modern("tools/call", "near", `"name":"near","arguments":`+k.args)
		got := w.post(message, append(change, k.change...)...)
		if got.status != k.status || (k.status == 400) != strings.Contains(got.last(), `"code":-32020`) {
			t.Errorf("%s: %d %s", k.args, got.status, got.last())
		}
	}
	expect.Fails(t, expect.Err(makeTestServer(func(o *server.Options) {
		near.Schema = json.RawMessage(`{"type":"object","properties":{"region":{"type":"object","x-mcp-header":"Region"}}}`)
		o.Tools = append(o.Tools, near)
	})), "x-mcp-header", "an object as a header")
}

func TestSSE(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := serveWeb(t, newTestServer(t))
	defer w.close()
	s := w.openSSE()
	defer s.close()
	s.post(servertest.Initialize)
	if got := s.next(); !strings.Contains(got, `"id":"init"`) {
		t.Fatal(got)
	}
	s.post(servertest.ToolCall("1", "steps", `{"n":3}`, `,"_meta":{"progressToken":"p"}`))
	for i, want := range []string{`"progress":1`, `"progress":3`, `"text":"done"`} {
		expect.Has(t, s.next(), want, i)
	}
	w.do(http.MethodPost, "/message?sessionId=x", servertest.Initialize).is(t, http.StatusNotFound)
}

// sse is a client of the legacy transport.
type sse struct {
	w      *webServer
	path   string
	events chan event
	end    context.CancelFunc
	change []with
}

func (w *webServer) openSSE(change ...with) *sse {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	res, err := w.request(ctx, http.MethodGet, "/sse", "", change...) //nolint:bodyclose // by who reads it
	if err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("/sse: %v %v", res, err)
	}
	s := &sse{w: w, events: make(chan event, 1000), end: stop, change: change}
	go func() {
		defer func() { _ = res.Body.Close() }()
		defer close(s.events)
		for e := range eventsOf(res.Body) {
			s.events <- e
		}
	}()
	e := <-s.events
	if e.name != "endpoint" || !strings.HasPrefix(e.data, "/message?sessionId=") {
		w.t.Fatalf("the first event is %+v", e)
	}
	s.path = e.data
	return s
}

func (s *sse) post(message string) {
	s.w.t.Helper()
	if got := s.w.do(http.MethodPost, s.path, message, s.change...); got.status != http.StatusAccepted || got.body != "" {
		s.w.t.Errorf("%s: %d %s", s.path, got.status, got.body)
	}
}

func (s *sse) next() string {
	s.w.t.Helper()
	select {
	case e := <-s.events:
		return e.data
	case <-time.After(5 * time.Minute):
		s.w.t.Fatal("no event in time")
		return ""
	}
}

func (s *sse) close() {
	s.end()
	for range s.events {
	}
}

func TestListenIsLoopback(t *testing.T) {
	for addr, want := range map[string]string{":0": "127.0.0.1", "0": "127.0.0.1", "localhost:0": "127.0.0.1"} {
		l, err := Listen(t.Context(), addr, false)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		if host, _, _ := net.SplitHostPort(l.Addr().String()); host != want {
			t.Errorf("%s: %s", addr, l.Addr())
		}
		_ = l.Close()
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		if l, err := Listen(t.Context(), addr, false); err == nil || !strings.Contains(err.Error(), "--token-file") {
			t.Errorf("%s: %v %v", addr, l, err)
		}
	}
	for _, addr := range []string{"", "x", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1"} {
		if l, err := Listen(t.Context(), addr, true); err == nil {
			t.Errorf("%q: %v", addr, l.Addr())
		}
	}
}

// TestListenIsWhatWasAsked has 0.0.0.0 not be [::] too, and says of what is taken that it is the network's doing.
func TestListenIsWhatWasAsked(t *testing.T) {
	l := expect.Value(Listen(t.Context(), "0.0.0.0:0", true))(t)
	defer func() { _ = l.Close() }()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	expect.Equal(t, host, "0.0.0.0", "listens on %s", l.Addr())
	var network net.Error
	if other, err := Listen(t.Context(), "0.0.0.0:"+port, true); !errors.As(err, &network) ||
		!strings.Contains(err.Error(), "choose another") {
		t.Errorf("listens twice: %v %v", other, err)
	}
	for _, addr := range []string{"99999", "127.0.0.1:70000", "-1", "99999999999999999999"} {
		_, err := Listen(t.Context(), addr, true)
		if err == nil || errors.As(err, &network) ||
			!strings.HasPrefix(err.Error(), "--http "+addr+": the port is out of range") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
