package viewer

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// Open pages are told at once that they are heard, and then of each call that any process adds.
func TestLive(t *testing.T) {
	f := newFixture(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(&request{Viewer: f.Viewer, ctx: r.Context()}).live(w, r)
	}))
	defer srv.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pages []*bufio.Scanner
	for range 2 {
		r := expect.Value(http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil))(t)
		answer := expect.Value(srv.Client().Do(r))(t) //nolint:bodyclose // at the end of the test
		defer func() { _ = answer.Body.Close() }()
		expect.Equal(t, answer.Header.Get("Content-Type"), "text/event-stream")
		pages = append(pages, bufio.NewScanner(answer.Body))
	}
	events := func() {
		for _, p := range pages {
			for p.Scan() && p.Text() == "" {
			}
			expect.Equal(t, p.Text(), "data: changed")
		}
	}
	events()
	f.traced(trace.Call{Owner: observations.Local, Tool: "t"}, "{}", "x")
	events()
	f.keep(observations.Local, "t", "an observation\n", nil)
	events()
}
