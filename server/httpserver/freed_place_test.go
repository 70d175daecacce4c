package httpserver

import (
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/server/stdio"
)

// TestPlaceIsFreeBeforeTheAnswer looks at the gate at the moment an answer goes out: a client that has read
// it and asks again is never told that its own call is still running.
func TestPlaceIsFreeBeforeTheAnswer(t *testing.T) {
	s := newTestServer(t, func(o *server.Options) { o.MaxCalls = 1 })
	in, to := io.Pipe()
	answered := make(chan struct{}, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- stdio.Serve(t.Context(), s, in, writerFunc(func(b []byte) (int, error) {
			expect.Equal(t, s.RunningCalls(), 0, "calls run while %s is written", b)
			answered <- struct{}{}
			return len(b), nil
		}))
	}()
	for _, line := range []string{servertest.Initialize, servertest.ToolCall(
		"1", "say", `{"text":"x"}`, "",
	), servertest.ToolCall("2", "say", `{"text":"y"}`, ""), servertest.ToolCall("3", "lost", `{}`, "")} {
		expect.Value(io.WriteString(to, line+"\n"))(t)
		<-answered
	}
	_ = to.Close()
	expect.OK(t, <-ended)
	w := serveWeb(t, s)
	message, change := modern("tools/call", "say", `"name":"say","arguments":{"text":"z"}`)
	for range 200 {
		if got := w.post(message, change...); !strings.Contains(got.last(), `"text":"z"`) {
			t.Fatalf("%d %s", got.status, got.last())
		}
	}
}

// writerFunc is an output.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }
