package httpserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// readsNothing opens /sse, reads where to post, and then nothing more.
func (w *webServer) readsNothing() (path string) {
	w.t.Helper()
	var d net.Dialer
	c := expect.Value(d.DialContext(w.t.Context(), "tcp", w.addr))(w.t)
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, _ = fmt.Fprintf(c, "GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", testToken)
	lines := bufio.NewReaderSize(c, 16)
	for {
		line := expect.Value(lines.ReadString('\n'))(w.t)
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "data: "); is {
			return at
		}
	}
}

// TestUnreadAnswersKeepNoPlaces has a client read nothing, while it asks for ever more and while calls of it
// are under way that tell of their progress.
func TestUnreadAnswersKeepNoPlaces(t *testing.T) {
	text := strings.Repeat("x", 200<<10)
	release := make(chan struct{})
	tool := func(name string, wait <-chan struct{}) server.RawTool {
		listed := mcp.Tool{Name: name, RawInputSchema: []byte(`{"type":"object"}`)}
		return server.RawTool{Tool: listed, Call: func(ctx context.Context) (any, error) {
			<-wait
			server.Progress(ctx, 1, 1, "")
			return mcp.NewToolResultText(text), nil
		}}
	}
	now := make(chan struct{})
	close(now)
	s := newTestServer(t, func(o *server.Options) {
		o.MaxCalls = 8
		o.Extra.Tools = []server.RawTool{tool("large", now), tool("held", release)}
	})
	w := serveWeb(t, s)
	path := w.readsNothing()
	w.do(http.MethodPost, path, servertest.Initialize)
	progress := `,"_meta":{"progressToken":"p"}`
	for i := range 4 {
		w.do(http.MethodPost, path, servertest.ToolCall(fmt.Sprint("9", i), "held", `{}`, progress))
	}
	refused := false
	for i := 0; i < 200 && !refused; i++ {
		got := w.do(http.MethodPost, path, servertest.ToolCall(fmt.Sprint("1", i), "large", `{}`, progress))
		if refused = got.status == http.StatusServiceUnavailable; refused &&
			!strings.Contains(got.body, "answers it does not read") {
			t.Errorf("%+v", got)
		}
	}
	if !refused {
		t.Error("the client was never refused")
	}
	if got := w.do(
		http.MethodPost, path, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`,
	); got.status != http.StatusAccepted {
		t.Errorf("what asks for nothing: %+v", got)
	}
	close(release)
	for end := time.Now().Add(20 * time.Second); s.RunningCalls() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d places are held", s.RunningCalls())
		}
	}
	if got := w.post(
		servertest.ToolCall("1", "say", `{"text":"hello"}`, ""), w.open(),
	); !strings.Contains(got.last(), "hello") {
		t.Errorf("another client: %+v", got)
	}
}

// TestUnreadAnswersAreBounded has a client lose its stream where more waits for it than may.
func TestUnreadAnswersAreBounded(t *testing.T) {
	o := jsonrpc.NewOutbox(nil)
	held := 0
	o.Reserve = func(n int) bool { held += n; return held <= jsonrpc.MaxQueued }
	o.Release = func(n int) { held -= n }
	expect.Must(t, o.SendDetached(make([]byte, jsonrpc.MaxQueued), nil))
	left := false
	if err := o.SendDetached(make([]byte, 2*jsonrpc.MaxQueued), func() { left = true }); err == nil || !left ||
		o.Ctx.Err() == nil {
		t.Errorf("%v %v", err, left)
	}
}
