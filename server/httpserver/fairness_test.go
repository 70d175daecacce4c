package httpserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// alone has the server know one identity only.
func alone(o *Options) { delete(o.Identities, otherToken) }

// fill asks for three times as many streams as there are connections: half as many as these are opened, and what is
// refused says why.
func (w *webServer) fill(connections int, why string, open func(i int) (*http.Response, error)) {
	w.t.Helper()
	opened := 0
	for i := range 3 * connections {
		res, err := open(i)
		expect.Must(w.t, err)
		w.t.Cleanup(func() { _ = res.Body.Close() })
		switch res.StatusCode {
		case http.StatusOK:
			opened++
		case http.StatusServiceUnavailable:
			if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), why) {
				w.t.Errorf("%s", text)
			}
		default:
			w.t.Errorf("%s", res.Status)
		}
	}
	expect.Equal(w.t, opened, connections/2, "streams were opened")
}

// TestListensAreStreams has one identity open every kind of stream there is without end.
func TestListensAreStreams(t *testing.T) {
	const connections = 16
	w := serveWeb(t, newTestServer(t, withStore(t)), func(o *Options) { o.Connections = connections })
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	message, change := modern("subscriptions/listen", "", `"notifications":{"resourcesListChanged":true}`)
	w.fill(connections, "too many open streams: 8 of this identity", func(i int) (*http.Response, error) {
		if i%2 == 0 {
			return w.request(t.Context(), http.MethodPost, "/mcp", message, change...)
		}
		return w.request(t.Context(), http.MethodGet, "/sse", "")
	})
	res, err := w.request(t.Context(), http.MethodPost, "/mcp", message, append(change, as(otherToken))...)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("another identity: %v %v", res, err)
	}
	_ = res.Body.Close()
}

// TestUnfinishedBodies has one identity begin messages without end, and finish none.
func TestUnfinishedBodies(t *testing.T) {
	s := newTestServer(t)
	for _, k := range []struct {
		name            string
		served, arrived int
		want            string
	}{
		{"more than may arrive", 8, 4, "bodies are still arriving: 4 of this identity"},
		{"more than may be served", 4, 8, "too many requests in progress: 4 of this identity"},
	} {
		h, err := newHTTP(t.Context(), s, Options{Identities: map[string]string{testToken: "local", otherToken: "other"}})
		expect.Must(t, err)
		h.requests.PerOwner, h.arriving.PerOwner = k.served, k.arrived
		w := serveHandler(t, h)
		for range 4 {
			c := w.begin()
			defer func() { _ = c.Close() }()
		}
		servertest.Wait(t, k.name, func() bool { return h.arriving.Count() == 4 })
		c := w.begin()
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(8 * time.Second)) // long before the others are given up
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") || !strings.Contains(string(text), k.want) {
			t.Errorf("%s: %v %q", k.name, err, text)
		}
		if got := w.post(servertest.Initialize, as(otherToken)); got.status != http.StatusOK {
			t.Errorf("%s: another identity: %+v", k.name, got)
		}
	}
}

// begin sends the head of a message, and of its body one byte.
func (w *webServer) begin() net.Conn {
	w.t.Helper()
	var d net.Dialer
	c := expect.Value(d.DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.url, "http://")))(w.t)
	expect.Value(io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+testToken+
		"\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 1000\r\n\r\n{"))(w.t)
	return c
}

// TestSilentBody has a message stop in its middle: it is given up long before the time that one which comes slowly has.
func TestSilentBody(t *testing.T) {
	h, err := newHTTP(t.Context(), newTestServer(t), Options{Identities: map[string]string{testToken: "local"}})
	expect.Must(t, err)
	h.bodyPause = 200 * time.Millisecond
	w := serveHandler(t, h)
	c := w.begin()
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") ||
		!strings.Contains(string(text), "pause for 200ms") {
		t.Errorf("%v %q", err, text)
	}
	servertest.Wait(t, "the places", func() bool { return h.arriving.Count()+h.requests.Count() == 0 })
}

// TestBodyThatComesSlowly has a message pause less than it may, but often.
func TestBodyThatComesSlowly(t *testing.T) {
	h, err := newHTTP(t.Context(), newTestServer(t), Options{Identities: map[string]string{testToken: "local"}})
	expect.Must(t, err)
	body := &chunks{rest: servertest.Initialize}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", body)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	got, no := h.readBody(w, r, "local")
	if no != nil || string(got) != servertest.Initialize {
		t.Fatalf("%v %s", no, got)
	}
	first, last := w.set[0], w.set[len(w.set)-2]
	if !w.set[len(w.set)-1].IsZero() || len(w.set) < len(servertest.Initialize) || !last.After(first) {
		t.Errorf("%d deadlines, from %s to %s", len(w.set), first, last)
	}
}

// chunks gives a byte at a time.
type chunks struct{ rest string }

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:1], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// deadlines keeps those that are set for reading.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestBusyWithOnesOwn has one identity call without end: it is refused before there is no place for others.
func TestBusyWithOnesOwn(t *testing.T) {
	const places = 8
	started, ended := make(chan struct{}, places), make(chan struct{}, places)
	s := newTestServer(t, func(o *server.Options) { o.MaxCalls = places }, runs(waiting(started, ended)))
	w := serveWeb(t, s)
	session, theirs := w.open(), all(as(otherToken), w.open(as(otherToken)))
	var calls sync.WaitGroup
	call := func(id string, change with) {
		calls.Go(func() { w.post(servertest.ToolCall(id, "say", "{}", ""), change) })
		take(t, "start", started)
	}
	share := jsonrpc.OwnerShare(places)
	for i := range share {
		call(fmt.Sprint(i), session)
	}
	if got := w.post(servertest.ToolCall("99", "say", "{}", ""), session); !strings.Contains(
		got.last(), fmt.Sprintf("busy: %d calls of this identity are running, which is its limit", share),
	) {
		t.Errorf("%s", got.last())
	}
	for i := range places - share {
		call(fmt.Sprint(i), theirs)
	}
	if got := w.post(servertest.ToolCall("9", "say", "{}", ""), theirs); !strings.Contains(
		got.last(), fmt.Sprintf("busy: %d calls are running; wait", places),
	) {
		t.Errorf("%s", got.last())
	}
	for i := range share {
		w.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), session)
	}
	for i := range places - share {
		w.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), theirs)
	}
	calls.Wait()
	servertest.Wait(t, "the places", func() bool { return s.RunningCalls() == 0 })
	expect.Equal(t, s.RunningCalls(), 0, "calls run")
}

// TestBodiesOfOne has one identity's messages leave room for those of another.
func TestBodiesOfOne(t *testing.T) {
	b := newBodyBudget(400)
	b.PerOwner = 300
	if !b.reserve("ann", freeBytes, 300) || b.reserve("ann", freeBytes, 1) {
		t.Errorf("%d held of 300", b.Count())
	}
	if !b.reserve("bob", freeBytes-10, 60) || b.reserve("bob", freeBytes+50, 51) || b.Count() != 350 {
		t.Errorf("another's: %d held", b.Count()-300)
	}
	b.release("ann", freeBytes+300)
	b.release("bob", freeBytes+50)
	if b.Count() != 0 || !b.reserve("ann", freeBytes, 300) || !b.reserve("bob", freeBytes, 100) {
		t.Error("something is held")
	}
}

// TestIdleStreams has one identity open streams without end: they leave room, for itself and for others.
func TestIdleStreams(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the streams are closed
	const connections = 16
	w := serveWeb(t, newTestServer(t), func(o *Options) { o.Connections = connections })
	defer w.close()
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	w.fill(connections, "--http-connections", func(i int) (*http.Response, error) {
		if i%2 == 0 {
			return w.request(t.Context(), http.MethodGet, "/sse", "")
		}
		return w.request(t.Context(), http.MethodGet, "/mcp", "", w.open())
	})
	for _, token := range []string{testToken, otherToken} {
		if got := w.post(
			servertest.ToolCall("1", "say", `{"text":"x"}`, ""), w.open(as(token)), as(token),
		); !strings.Contains(got.body, `"text":"x"`) {
			t.Errorf("%+v", got)
		}
	}
	other, err := w.request(t.Context(), http.MethodGet, "/sse", "", as(otherToken))
	if err != nil || other.StatusCode != http.StatusOK {
		t.Errorf("another identity: %v %v", other, err)
	}
	_ = other.Body.Close()
}
