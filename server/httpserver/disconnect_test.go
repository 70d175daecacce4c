package httpserver

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// TestDisconnectCancels has the client hang up in the stateless era, and where the stream of /sse ends.
func TestDisconnectCancels(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	s := newTestServer(t, runs(waiting(started, ended)))
	w := serveWeb(t, s)
	defer w.close()
	message, headers := modern("tools/call", "say", `"name":"say","arguments":{}`)
	w.hangUpOn(message, func() { take(t, "start", started) }, headers...)
	take(t, "end of the call", ended)
	stream := w.openSSE()
	stream.post(servertest.Initialize)
	stream.next()
	stream.post(servertest.ToolCall("1", "say", "{}", ""))
	take(t, "SSE: start", started)
	stream.close()
	take(t, "SSE: end of the call", ended)
}

// hangUpOn posts a message, calls before, and hangs up before there is an answer.
func (w *webServer) hangUpOn(message string, before func(), change ...with) {
	ctx, hangUp := context.WithCancel(w.t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if res, err := w.request(ctx, http.MethodPost, "/mcp", message, change...); err == nil {
			_ = res.Body.Close()
			w.t.Errorf("it was answered: %s", res.Status)
		}
	}()
	before()
	hangUp()
	take(w.t, "end of the request", gone)
}

// TestDisconnectInSession has the client of a session hang up: its call goes on, and ends when it is done, when the
// client cancels it, or when its session ends. Then nothing of it is left.
func TestDisconnectInSession(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	started, finish, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	s := newTestServer(t, runs(
		func(ctx context.Context, _ funnel.Request) (funnel.Answer, error) {
			started <- struct{}{}
			select {
			case <-finish:
			case <-ctx.Done():
			}
			ended <- context.Cause(ctx)
			return funnel.Answer{}, ctx.Err()
		}))
	w := serveWeb(t, s)
	defer w.close()
	call := servertest.ToolCall("1", "say", "{}", "")
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	stateless, headers := modern("tools/call", "say", `"name":"say","arguments":{}`)
	begun := func() { take(t, "start", started) }
	session := w.open()
	for _, c := range []struct {
		name string
		end  func()
		want error
	}{
		{"done", func() { finish <- struct{}{} }, nil},
		{"cancelled", func() { w.post(cancel, session) }, server.ErrCancelled},
		{"session deleted", func() { w.do(http.MethodDelete, "/mcp", "", session) }, server.ErrEnding},
	} {
		w.hangUpOn(call, begun, session)
		// The server sees this client leave later than the one above.
		w.hangUpOn(stateless, begun, headers...)
		if err := <-ended; err == nil {
			t.Fatalf("%s: the stateless call was not cancelled", c.name)
		}
		select {
		case err := <-ended:
			t.Fatalf("%s: the call ended with its connection: %v", c.name, err)
		case <-time.After(50 * time.Millisecond):
		}
		if got := w.post(servertest.ToolCall("1", "say", "{}", ""), session); !strings.Contains(
			got.last(),
			"in flight",
		) {
			t.Errorf("%s: the id is free: %+v", c.name, got)
		}
		c.end()
		expect.ErrorIs(t, <-ended, c.want, c.name)
		servertest.Wait(t, "no call runs", func() bool { return s.RunningCalls() == 0 })
	}
}

// TestDisconnectAtTimeLimit has the client of a session hang up on a call that ends at its time limit.
func TestDisconnectAtTimeLimit(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	s := newTestServer(t, func(o *server.Options) { o.CallTimeout = time.Second }, runs(waiting(started, ended)))
	w := serveWeb(t, s)
	defer w.close()
	w.hangUpOn(servertest.ToolCall("1", "say", "{}", ""), func() { take(t, "start", started) }, w.open())
	take(t, "end of the call", ended)
	servertest.Wait(t, "no call runs", func() bool { return s.RunningCalls() == 0 })
}
