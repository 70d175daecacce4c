package httpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// heard is what the notes of one stream came to.
type heard struct {
	notes, foreign, late int
	answered             bool
}

// hear takes one message of the stream of the request id, whose progress token is "t" and the id.
func (h *heard) hear(t testing.TB, id, data string) {
	var m servertest.Message
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		t.Errorf("%v: %.200s", err, data)
		return
	}
	switch {
	case m.ID != nil:
		h.answered = true
		if string(m.ID) != id {
			h.foreign++
		}
	case string(m.Params.ProgressToken) != `"t`+id+`"`:
		h.foreign++
	case h.answered:
		h.late++
	default:
		h.notes++
		expect.Equal(t, m.Params.Progress, h.notes, "stream %s: progress, note", id)
	}
}

// TestProgressOverHTTP has four calls of a session tell 75 notes each, at once: of these none is lost, none
// is on another's stream, none after the answer, in either era.
func TestProgressOverHTTP(t *testing.T) {
	const calls, each = 4, 75
	s := newTestServer(t, runs(servertest.Notes(each)))
	w := serveWeb(t, s)
	session := w.open()
	for round := range 10 {
		var all sync.WaitGroup
		var got [calls]heard
		for i := range calls {
			id := fmt.Sprint(i)
			message, change := servertest.ToolCall(id, "say", "{}", `,"_meta":{"progressToken":"t`+id+`"}`), []with{session}
			if round%2 == 1 {
				message, change = modern("tools/call", "say", `"name":"say","arguments":{}`)
				message = strings.Replace(message, `"id":1`, `"id":`+id, 1)
				message = strings.Replace(message, `"_meta":{`, `"_meta":{"progressToken":"t`+id+`",`, 1)
			}
			all.Go(func() {
				for _, data := range w.post(message, change...).events {
					got[i].hear(t, id, data)
				}
			})
		}
		all.Wait()
		for i, h := range got {
			if h.notes < each || h.foreign > 0 || h.late > 0 || !h.answered { // some of the late ones come in time
				t.Errorf("round %d, stream %d: %+v, %d notes were told", round, i, h, each)
			}
		}
	}
}

// TestProgressOverSSE is the same on the one stream that all calls share.
func TestProgressOverSSE(t *testing.T) {
	const calls, each = 4, 75
	s := newTestServer(t, runs(servertest.Notes(each)))
	w := serveWeb(t, s)
	stream := w.openSSE()
	defer stream.close()
	stream.post(servertest.Initialize)
	stream.next()
	for range 5 {
		var got [calls]heard
		for i := range calls {
			stream.post(servertest.ToolCall(fmt.Sprint(i), "say", "{}", fmt.Sprintf(`,"_meta":{"progressToken":"t%d"}`, i)))
		}
		for answers := 0; answers < calls; {
			data := stream.next()
			var m servertest.Message
			expect.Must(t, json.Unmarshal([]byte(data), &m))
			id := strings.Trim(string(m.Params.ProgressToken), `"t`)
			if m.ID != nil {
				id = string(m.ID)
				answers++
			}
			var i int
			if _, err := fmt.Sscan(id, &i); err != nil || i < 0 || i >= calls {
				t.Fatalf("%s: %s", id, data)
			}
			got[i].hear(t, id, data)
		}
		for i, h := range got {
			if h.notes < each || h.foreign > 0 || h.late > 0 || !h.answered {
				t.Errorf("call %d: %+v", i, h)
			}
		}
	}
}

// waiting is a run that waits for the end of its context, and says so.
func waiting(started, ended chan<- struct{}) func(context.Context, funnel.Request) (funnel.Answer, error) {
	return func(ctx context.Context, _ funnel.Request) (funnel.Answer, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return funnel.Answer{}, ctx.Err()
	}
}

func take(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s: not in time", what)
	}
}

// TestCancelAcrossPosts cancels by another POST of the session. The call's own response ends without an answer.
func TestCancelAcrossPosts(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	s := newTestServer(t, runs(waiting(started, ended)))
	w := serveWeb(t, s)
	session, other := w.open(), w.open(as(otherToken))
	got := make(chan reply, 1)
	go func() { got <- w.post(servertest.ToolCall("1", "say", "{}", ""), session) }()
	take(t, "start", started)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	w.post(cancel, other, as(otherToken)).is(t, http.StatusAccepted)
	select {
	case <-ended:
		t.Fatal("another session's call was cancelled")
	case <-time.After(50 * time.Millisecond):
	}
	w.post(cancel, session).is(t, http.StatusAccepted)
	take(t, "end", ended)
	if r := <-got; len(r.events) != 0 || r.body != "" {
		t.Errorf("a cancelled call was answered: %+v", r)
	}
}

// TestReusedID has a client use an id again as soon as its call was answered, and leave the connection of the first.
func TestReusedID(t *testing.T) {
	s := newTestServer(t)
	w := serveWeb(t, s)
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	session := w.open()
	for range 300 {
		w.post(servertest.ToolCall("1", "say", `{"text":"x"}`, ""), session).is(t, http.StatusOK, `"text":"x"`)
	}
}

// TestGoneAfterItsAnswer has the client go while the answer is written, and its next call, under the same id, begin
// meanwhile.
func TestGoneAfterItsAnswer(t *testing.T) {
	s := newTestServer(t)
	h := expect.Value(newHTTP(t.Context(), s, Options{NoToken: true}))(t)
	f, fault := jsonrpc.Parse([]byte(servertest.ToolCall("1", "say", `{"text":"x"}`, "")))
	if fault != nil {
		t.Fatal(fault)
	}
	conn := s.Connect(t.Context())
	drop := func([]byte, func()) error { return nil }
	conn.Handle(t.Context(), []byte(servertest.Initialize), drop)
	// That gone comes before answered is what the write that waits makes likely, so it is tried often.
	for i := range 20 {
		ctx, gone := context.WithCancel(t.Context())
		next := make(chan struct{})
		w := &slowAnswer{ResponseRecorder: httptest.NewRecorder()}
		w.during = func() {
			work := conn.Accept(t.Context(), []byte(servertest.ToolCall("1", "sleep", `{"ms":60000}`, "")), drop)
			go func() { work(); close(next) }()
			gone()
			time.Sleep(10 * time.Millisecond)
		}
		h.serveFrame(ctx, conn, newExchange(w, time.Minute, true, true), f)
		expect.MustEqual(t, s.RunningCalls(), 1, "round %d: another call was cancelled", i)
		conn.Handle(
			t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), drop,
		)
		servertest.Within(t, "the next call", next)
	}
}

// slowAnswer has something happen while an answer is written.
type slowAnswer struct {
	*httptest.ResponseRecorder
	during func()
}

func (w *slowAnswer) Write(p []byte) (int, error) {
	w.during()
	return w.ResponseRecorder.Write(p)
}

// TestBusyOverHTTP fills every place: one more is told to try again, ping and cancel go through.
func TestBusyOverHTTP(t *testing.T) {
	const places = 4
	started, ended := make(chan struct{}, places), make(chan struct{}, places)
	s := newTestServer(t, func(o *server.Options) { o.MaxCalls = places }, runs(waiting(started, ended)))
	w := serveWeb(t, s, alone)
	session := w.open()
	var all sync.WaitGroup
	for i := range places {
		all.Go(func() { w.post(servertest.ToolCall(fmt.Sprint(i), "say", "{}", ""), session) })
		take(t, "start", started)
	}
	if got := w.post(servertest.ToolCall("9", "say", "{}", ""), session); !strings.Contains(got.last(), "busy") ||
		!strings.Contains(got.last(), `"isError":true`) {
		t.Errorf("%+v", got)
	}
	message, change := modern("tools/list", "", "")
	w.post(message, change...).is(t, http.StatusServiceUnavailable, "busy")
	if got := w.post(servertest.Ping, session); !strings.Contains(got.body, `"result":{}`) {
		t.Errorf("%+v", got)
	}
	w.open() // initialize neither waits
	for i := range places {
		w.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), session)
		take(t, "end", ended)
	}
	all.Wait()
}

// TestLargeAnswerOverHTTP has 10 MB come whole, as JSON and as an event.
func TestLargeAnswerOverHTTP(t *testing.T) {
	size := 10 << 20
	if testing.Short() {
		size = 1 << 20
	}
	text := strings.Repeat("0123456789abcdef", size/16)
	s := newTestServer(t, runs(func(_ context.Context, r funnel.Request) (funnel.Answer, error) {
		r.Progress(1, 0, "")
		return funnel.Answer{Blocks: []funnel.Block{{Text: text}}}, nil
	}))
	w := serveWeb(t, s)
	session := w.open()
	for name, change := range map[string]with{"JSON": header("Accept", "application/json"), "stream": header(
		"Accept", "text/event-stream",
	)} {
		got := w.post(servertest.ToolCall("1", "say", "{}", `,"_meta":{"progressToken":1}`), session, change)
		var a servertest.Answer
		if err := json.Unmarshal([]byte(got.last()), &a); err != nil || a.Text() != text {
			t.Errorf("%s: %v, %d bytes", name, err, len(got.last()))
		}
	}
	stream := w.openSSE()
	defer stream.close()
	stream.post(servertest.Initialize)
	stream.next()
	stream.post(servertest.ToolCall("1", "say", "{}", ""))
	var a servertest.Answer
	if err := json.Unmarshal([]byte(stream.next()), &a); err != nil || a.Text() != text {
		t.Errorf("SSE: %v", err)
	}
}

// raw opens a connection and sends a request on it, whose answer nobody reads.
func (w *webServer) raw(path, method, body string, headers ...string) net.Conn {
	w.t.Helper()
	var d net.Dialer
	c, err := d.DialContext(w.t.Context(), "tcp", w.addr)
	expect.Must(w.t, err)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096)
	}
	_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: %d\r\n%s\r\n%s",
		method, path, testToken, len(body), strings.Join(append(headers, ""), "\r\n"), body)
	expect.Must(w.t, err)
	return c
}

// TestHTTPClientThatNeverReads asks for much and reads none of it: its calls are given up at the write
// time-out, its place and its goroutines with them, and others are served meanwhile.
func TestHTTPClientThatNeverReads(t *testing.T) {
	const clients = 4
	text := strings.Repeat("0123456789abcdef", 6<<20/16) // more than the buffers between take
	var sent atomic.Int32
	s := newTestServer(t, func(o *server.Options) { o.MaxCalls = clients + 1; o.WriteTimeout = time.Second }, runs(func(_ context.Context, r funnel.Request) (funnel.Answer, error) {
		if string(r.Args) == "{}" {
			sent.Add(1)
			return funnel.Answer{Blocks: []funnel.Block{{Text: text}}}, nil
		}
		return funnel.Answer{Blocks: []funnel.Block{{Text: "small"}}}, nil
	}))
	w := serveWeb(t, s, alone)
	id := ""
	session := w.open(func(*http.Request) {})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	session(r)
	id = r.Header.Get("Mcp-Session-Id")
	before := runtime.NumGoroutine()
	for i := range clients {
		defer func(c net.Conn) { _ = c.Close() }(w.raw(
			"/mcp", "POST", servertest.ToolCall(fmt.Sprint(i), "say", "{}", ""), "Mcp-Session-Id: "+id,
		))
	}
	servertest.Wait(t, "the answers", func() bool { return sent.Load() == clients })
	if got := w.post(servertest.ToolCall("9", "say", `{"text":"x"}`, ""), session); !strings.Contains(got.body, "small") {
		t.Errorf("%+v", got)
	}
	servertest.Wait(t, "the places", func() bool { return s.RunningCalls() == 0 })
	servertest.Wait(t, "the goroutines", func() bool { return runtime.NumGoroutine() <= before+4 })
	// A stream that nobody reads ends too: what waits for it is bounded, and dropped with it.
	c := w.raw("/sse", "GET", "")
	defer func() { _ = c.Close() }()
	head := bufio.NewReader(c)
	path := ""
	for path == "" {
		line := expect.Value(head.ReadString('\n'))(t)
		if after, ok := strings.CutPrefix(line, "data: "); ok {
			path = strings.TrimSpace(after)
		}
	}
	w.do(http.MethodPost, path, servertest.Initialize).is(t, http.StatusAccepted)
	for i := range clients {
		w.do(http.MethodPost, path, servertest.ToolCall(fmt.Sprint(i), "say", "{}", ""))
	}
	servertest.Wait(
		t, "the end of the stream",
		func() bool { return w.do(http.MethodPost, path, servertest.Ping).status == http.StatusNotFound },
	)
	servertest.Wait(t, "the places", func() bool { return s.RunningCalls() == 0 })
}

// TestShutdownWithStreamsOpen ends the server while streams are open and calls run, one of which is deaf.
func TestShutdownWithStreamsOpen(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	started := make(chan struct{}, 3)
	release := make(chan struct{})
	s := newTestServer(t, runs(func(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
		started <- struct{}{}
		if strings.Contains(string(r.Args), "deaf") {
			<-release
		}
		<-ctx.Done()
		return funnel.Answer{}, ctx.Err()
	}))
	w := serveWeb(t, s)
	session := w.open()
	get, err := w.request(t.Context(), http.MethodGet, "/mcp", "", session)
	if err != nil || get.StatusCode != http.StatusOK || get.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v %v", get, err)
	}
	defer func() { _ = get.Body.Close() }()
	stream := w.openSSE()
	stream.post(servertest.Initialize)
	stream.next()
	var all sync.WaitGroup
	for i, args := range []string{"{}", `{"text":"deaf"}`} {
		all.Go(func() {
			if res, err := w.request(
				t.Context(), http.MethodPost, "/mcp", servertest.ToolCall(fmt.Sprint(i), "say", args, ""), session,
			); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		})
		take(t, "start", started)
	}
	half := w.raw("/mcp", "POST", "") // one more connection, idle
	defer func() { _ = half.Close() }()
	w.close()
	if _, err := io.Copy(io.Discard, get.Body); err != nil && !strings.Contains(err.Error(), "EOF") &&
		!strings.Contains(err.Error(), "reset") {
		t.Errorf("the stream ended with %v", err)
	}
	all.Wait()
	stream.close()
	close(release)
}

// TestGetStream carries what belongs to no call, to its own session alone; of two the newer is used.
func TestGetStream(t *testing.T) {
	s := newTestServer(t)
	h := expect.Value(newHTTP(t.Context(), s, Options{NoToken: true}))(t)
	w := serveHandler(t, h)
	a, b := w.open(), w.open()
	listen := func(session with) (<-chan string, func()) {
		ctx, stop := context.WithCancel(t.Context())
		res, err := w.request(ctx, http.MethodGet, "/mcp", "", session, header("Last-Event-ID", "7")) //nolint:bodyclose // by who reads it
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v %v", res, err)
		}
		got := make(chan string, 10)
		go func() {
			defer close(got)
			defer func() { _ = res.Body.Close() }()
			for e := range eventsOf(res.Body) {
				got <- e.data
			}
		}()
		return got, stop
	}
	onA, stopA := listen(a)
	onB, stopB := listen(b)
	defer stopA()
	defer stopB()
	conns := func() (conns []*server.Conn) {
		h.sessions.mu.Lock()
		defer h.sessions.mu.Unlock()
		for _, x := range h.sessions.byID {
			conns = append(conns, x.conn)
		}
		return conns
	}
	for i, c := range conns() {
		expect.Must(t, c.SendOwn([]byte(fmt.Sprintf("{\"n\":%d}\n", i))))
	}
	got := []string{<-onA, <-onB}
	slices.Sort(got)
	if got[0] != `{"n":0}` || got[1] != `{"n":1}` {
		t.Errorf("%q", got)
	}
	again, stop := listen(a)
	defer stop()
	if data, ok := <-onA; ok {
		t.Errorf("the older stream goes on: %s", data)
	}
	for _, c := range conns() {
		expect.Must(t, c.SendOwn([]byte("{\"again\":true}\n")))
	}
	expect.Equal(t, <-again, `{"again":true}`)
	w.do(http.MethodDelete, "/mcp", "", a).is(t, http.StatusNoContent)
	if data, ok := <-again; ok {
		t.Errorf("the stream outlives its session: %s", data)
	}
}

// TestAskOverHTTP has a tool ask its client on the call's own stream; the answer comes by another POST.
func TestAskOverHTTP(t *testing.T) {
	w := serveWeb(t, newTestServer(t, withAskTools))
	got := w.post(strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+servertest.CanAll, 1))
	session := header("Mcp-Session-Id", got.header.Get("Mcp-Session-Id"))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	res, err := w.request(ctx, http.MethodPost, "/mcp", servertest.ToolCall("1", "greet", "{}", ""), session)
	expect.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	last := ""
	for e := range eventsOf(res.Body) {
		var asked servertest.Ours
		expect.Must(t, json.Unmarshal([]byte(e.data), &asked))
		if asked.Method == "elicitation/create" {
			if got := w.post(
				`{"jsonrpc":"2.0","id":`+string(asked.ID)+`,`+servertest.SayAnna+`}`, session,
			); got.status != http.StatusAccepted {
				t.Errorf("%+v", got)
			}
		}
		last = e.data
	}
	expect.Contains(t, last, "hello Anna")
}
