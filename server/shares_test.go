package server

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// alone has the server know one identity only.
func alone(o *HTTPOptions) { delete(o.Identities, otherToken) }

func withStore(t testing.TB) func(*Options) {
	return func(o *Options) { o.Store = newTestStore(t) }
}

// TestListensAreStreams has one identity open every kind of stream there is without end.
func TestListensAreStreams(t *testing.T) {
	const connections = 16
	w := serveWeb(t, newTestServer(t, withStore(t)), func(o *HTTPOptions) { o.Connections = connections })
	w.http.Transport.(*http.Transport).DisableKeepAlives = true
	message, change := modern("subscriptions/listen", "", `"notifications":{"resourcesListChanged":true}`)
	opened := 0
	for i := range 2 * connections {
		var res *http.Response
		var err error
		if i%2 == 0 {
			res, err = w.request(t.Context(), http.MethodPost, "/mcp", message, change...)
		} else {
			res, err = w.request(t.Context(), http.MethodGet, "/sse", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		switch res.StatusCode {
		case http.StatusOK:
			opened++
		case http.StatusServiceUnavailable:
			if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), "8 of this identity, are the most") {
				t.Errorf("%s", text)
			}
		default:
			t.Errorf("%s", res.Status)
		}
	}
	if opened != connections/2 {
		t.Errorf("%d streams were opened", opened)
	}
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
