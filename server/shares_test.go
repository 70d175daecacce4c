package server

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
)

// alone has the server know one identity only.
func alone(o *HTTPOptions) { delete(o.Identities, otherToken) }

func withStore(t testing.TB) func(*Options) {
	return func(o *Options) { o.Store = newTestStore(t) }
}

// fill asks for three times as many streams as there are connections: half as many as these are opened, and what is refused says why.
func (w *webServer) fill(connections int, why string, open func(i int) (*http.Response, error)) {
	w.t.Helper()
	opened := 0
	for i := range 3 * connections {
		res, err := open(i)
		if err != nil {
			w.t.Fatal(err)
		}
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
	if opened != connections/2 {
		w.t.Errorf("%d streams were opened", opened)
	}
}

// TestListensAreStreams has one identity open every kind of stream there is without end.
func TestListensAreStreams(t *testing.T) {
	const connections = 16
	w := serveWeb(t, newTestServer(t, withStore(t)), func(o *HTTPOptions) { o.Connections = connections })
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	message, change := modern("subscriptions/listen", "", `"notifications":{"resourcesListChanged":true}`)
	w.fill(connections, "8 of this identity, are the most", func(i int) (*http.Response, error) {
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

// TestListensFull words each of the bounds that a subscription may meet.
func TestListensFull(t *testing.T) {
	for _, k := range []struct {
		all, each int
		want      string
	}{
		{3, 2, "2 of this identity, are its share; cancel one"},
		{2, 2, "2 of this identity, are its share; cancel one"},
		{1, 2, "1 of all identities, are the most there may be; try again later"},
	} {
		s := newTestServer(t, withStore(t))
		s.listens.all, s.listens.each = k.all, k.each
		l := newModernListener(t, s, "ann")
		for i := range min(k.all, k.each) {
			l.listenTo(string(rune('1'+i)), `{"resourcesListChanged":true}`)
			l.next("acknowledged")
		}
		within(t, "one too many", l.listenTo("9", `{"resourcesListChanged":true}`))
		l.next(`"id":9`, "-32010", k.want)
		l.conn.end(errCancelled)
	}
}

func TestShares(t *testing.T) {
	s := shares{all: 4, each: 3}
	for range 3 {
		if full := s.enter("ann"); full != nil {
			t.Fatal(full)
		}
	}
	if full := s.enter("ann"); full == nil || !full.own || full.n != 3 {
		t.Errorf("her fourth: %v", full)
	}
	if full := s.enter("bob"); full != nil {
		t.Errorf("another's first: %v", full)
	}
	if full := s.enter("bob"); full == nil || full.own || full.n != 4 {
		t.Errorf("one too many: %v", full)
	}
	s.leave("bob")
	if s.count() != 3 || len(s.held) != 1 {
		t.Errorf("%+v", s.held)
	}
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 3, 64: 48, 1024: 768} {
		if got := shareOf(n); got != want {
			t.Errorf("of %d one may hold %d, want %d", n, got, want)
		}
	}
}

// TestUnfinishedBodies has one identity begin messages without end, and finish none.
func TestUnfinishedBodies(t *testing.T) {
	s := newTestServer(t)
	for _, k := range []struct {
		name            string
		served, arrived int
		want            string
	}{
		{"more than may arrive", 8, 4, "the messages that are arriving, 4 of this identity"},
		{"more than may be served", 4, 8, "the requests in service, 4 of this identity"},
	} {
		h, err := s.newWeb(t.Context(), HTTPOptions{Identities: map[string]string{testToken: "local", otherToken: "other"}})
		if err != nil {
			t.Fatal(err)
		}
		h.served.each, h.arriving.each = k.served, k.arrived
		w := serveHandler(t, h)
		for range 4 {
			c := w.begin()
			defer func() { _ = c.Close() }()
		}
		wait(t, k.name, func() bool { return h.arriving.count() == 4 })
		c := w.begin()
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(8 * time.Second)) // long before the others are given up
		text, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 503 ") || !strings.Contains(string(text), k.want) {
			t.Errorf("%s: %v %q", k.name, err, text)
		}
		if got := w.post(initialize, as(otherToken)); got.status != http.StatusOK {
			t.Errorf("%s: another identity: %+v", k.name, got)
		}
	}
}

// begin sends the head of a message, and of its body one byte.
func (w *webServer) begin() net.Conn {
	w.t.Helper()
	var d net.Dialer
	c, err := d.DialContext(w.t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+testToken+
		"\r\nContent-Type: application/json\r\nAccept: */*\r\nContent-Length: 1000\r\n\r\n{")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestSilentBody has a message stop in its middle: it is given up long before the time that one which comes slowly has.
func TestSilentBody(t *testing.T) {
	h, err := newTestServer(t).newWeb(t.Context(), HTTPOptions{Identities: map[string]string{testToken: "local"}})
	if err != nil {
		t.Fatal(err)
	}
	h.silence = 200 * time.Millisecond
	w := serveHandler(t, h)
	c := w.begin()
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") || !strings.Contains(string(text), "pause for 200ms") {
		t.Errorf("%v %q", err, text)
	}
	wait(t, "the places", func() bool { return h.arriving.count()+h.served.count() == 0 })
}

// TestBodyThatComesSlowly has a message pause less than it may, but often.
func TestBodyThatComesSlowly(t *testing.T) {
	h, err := newTestServer(t).newWeb(t.Context(), HTTPOptions{Identities: map[string]string{testToken: "local"}})
	if err != nil {
		t.Fatal(err)
	}
	body := &chunks{rest: initialize}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", body)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	got, no := h.read(w, r, "local")
	if no != nil || string(got) != initialize {
		t.Fatalf("%v %s", no, got)
	}
	first, last := w.set[0], w.set[len(w.set)-2]
	if !w.set[len(w.set)-1].IsZero() || len(w.set) < len(initialize) || !last.After(first) {
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
	s := newTestServer(t, func(o *Options) { o.MaxCalls = places })
	started, ended := make(chan struct{}, places), make(chan struct{}, places)
	s.run = waiting(started, ended)
	w := serveWeb(t, s)
	session, theirs := w.open(), all(as(otherToken), w.open(as(otherToken)))
	var calls sync.WaitGroup
	call := func(id string, change with) {
		calls.Go(func() { w.post(toolCall(id, "say", "{}", ""), change) })
		take(t, "start", started)
	}
	share := shareOf(places)
	for i := range share {
		call(fmt.Sprint(i), session)
	}
	if got := w.post(toolCall("99", "say", "{}", ""), session); !strings.Contains(got.last(), fmt.Sprintf("busy: %d calls of this identity are running, which is its share", share)) {
		t.Errorf("%s", got.last())
	}
	for i := range places - share {
		call(fmt.Sprint(i), theirs)
	}
	if got := w.post(toolCall("9", "say", "{}", ""), theirs); !strings.Contains(got.last(), fmt.Sprintf("busy: %d calls are running; wait", places)) {
		t.Errorf("%s", got.last())
	}
	for i := range share {
		w.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), session)
	}
	for i := range places - share {
		w.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i), theirs)
	}
	calls.Wait()
	wait(t, "the places", func() bool { return s.gate.running() == 0 })
	if len(s.gate.held) != 0 || s.gate.all != (load{}) {
		t.Errorf("%+v %+v", s.gate.all, s.gate.held)
	}
}

// TestGateBytes has messages be too large together, for all and for one.
func TestGateBytes(t *testing.T) {
	g := gate{maxCalls: 100, maxBytes: 400}
	if fault := g.enter("ann", 1000); fault != nil {
		t.Errorf("one is always let in: %v", fault)
	}
	g.leave("ann", 1000)
	g.share()
	for range 3 {
		if fault := g.enter("ann", 100); fault != nil {
			t.Fatal(fault)
		}
	}
	if fault := g.enter("ann", 1); fault == nil || !strings.Contains(fault.Message, "3 calls of this identity") {
		t.Errorf("%v", fault)
	}
	if fault := g.enter("bob", 100); fault != nil {
		t.Errorf("another's: %v", fault)
	}
	if fault := g.enter("bob", 1); fault == nil || !strings.Contains(fault.Message, "4 calls are running") {
		t.Errorf("%v", fault)
	}
}

// TestBodiesOfOne has one identity's messages leave room for those of another.
func TestBodiesOfOne(t *testing.T) {
	b := bodies{all: budget{max: 400}}
	b.share([]credential{{owner: "ann"}, {owner: "bob"}})
	if !b.take("ann", freeBody, 300) || b.take("ann", freeBody, 1) {
		t.Errorf("%d held of 300", b.own["ann"].held)
	}
	if !b.take("bob", freeBody-10, 60) || b.take("bob", freeBody+50, 51) || b.own["bob"].held != 50 {
		t.Errorf("another's: %d held", b.own["bob"].held)
	}
	b.give("ann", freeBody+300)
	b.give("bob", freeBody+50)
	if b.all.held != 0 || b.own["ann"].held != 0 || b.own["bob"].held != 0 {
		t.Error("something is held")
	}
}

// TestIdleStreams has one identity open streams without end: they leave room, for itself and for others.
func TestIdleStreams(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the streams are closed
	const connections = 16
	w := serveWeb(t, newTestServer(t), func(o *HTTPOptions) { o.Connections = connections })
	defer w.close()
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	w.fill(connections, "--http-connections", func(i int) (*http.Response, error) {
		if i%2 == 0 {
			return w.request(t.Context(), http.MethodGet, "/sse", "")
		}
		return w.request(t.Context(), http.MethodGet, "/mcp", "", w.open())
	})
	for _, token := range []string{testToken, otherToken} {
		if got := w.post(toolCall("1", "say", `{"text":"x"}`, ""), w.open(as(token)), as(token)); !strings.Contains(got.body, `"text":"x"`) {
			t.Errorf("%+v", got)
		}
	}
	other, err := w.request(t.Context(), http.MethodGet, "/sse", "", as(otherToken))
	if err != nil || other.StatusCode != http.StatusOK {
		t.Errorf("another identity: %v %v", other, err)
	}
	_ = other.Body.Close()
}
