package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// peer is the server's end of a link.
type peer struct {
	t     *testing.T
	write func(format string, args ...any)
	lines *bufio.Scanner
}

// linked returns a link with a handler, and the server's end of it.
func linked(t *testing.T, handler Handler) (*link, *peer) {
	t.Helper()
	in, out := io.Pipe()
	theirIn, theirOut := io.Pipe()
	l := newPipe(in, theirOut, slog.New(slog.DiscardHandler), handler, func() error { return ErrEnded })
	t.Cleanup(func() { _ = out.Close(); <-l.Ended(); _ = theirIn.Close() })
	lines := bufio.NewScanner(theirIn)
	lines.Buffer(nil, 1<<20)
	return l, &peer{t, func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }, lines}
}

func (p *peer) read() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("the link has ended")
	}
	return p.lines.Text()
}

// A request of the server is answered as the handler says, or refused with the reason.
func TestRequestsOfTheServer(t *testing.T) {
	handler := func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "echo":
			return params, nil
		case "fault":
			return nil, fmt.Errorf("wrapped: %w", &jsonrpc.Fault{Code: -7, Message: "no", Data: json.RawMessage(`{"a":1}`)})
		case "nothing":
			return nil, nil
		case "error":
			return nil, errors.New(strings.Repeat("x", 1000))
		}
		panic(method)
	}
	_, p := linked(t, Handler{Request: handler})
	large := `{"text":"` + strings.Repeat("y", 300<<10) + `"}`
	for _, c := range [][2]string{
		{`"id":1,"method":"echo","params":{ "a" : 1.50, "b":"<" }`, `"id":1,"result":{ "a" : 1.50, "b":"<" }`},
		{`"id":"one","method":"echo","params":{"a":1,"a":2}`, `"id":"one","result":{"a":1,"a":2}`},
		{`"id":1,"method":"echo","params":` + large, `"id":1,"result":` + large},
		{`"id":2,"method":"fault"`, `"id":2,"error":{"code":-7,"message":"no","data":{"a":1}}`},
		{`"id":3,"method":"error"`, `"id":3,"error":{"code":-32603,` +
			`"message":"` + jsonrpc.Echo(strings.Repeat("x", 1000)) + `"}`},
		{`"id":4,"method":"panics"`, `"id":4,"error":{"code":-32603,"message":"a defect of the client"}`},
		{`"id":6,"method":"nothing"`, `"id":6,"result":{}`},
		{`"id":5,"method":"ping"`, `"id":5,"result":{}`},
	} {
		p.write(`{"jsonrpc":"2.0",%s}`, c[0])
		if got, want := p.read(), `{"jsonrpc":"2.0",`+c[1]+`}`; got != want {
			t.Errorf("%.100s: %.300s\nwant %.300s", c[0], got, want)
		}
	}
	_, p = linked(t, Handler{})
	p.write(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	if got := p.read(); !strings.Contains(got, "-32601") || !strings.Contains(got, "roots/list") {
		t.Errorf("without a handler: %s", got)
	}
}

// At most 64 requests are open. A request that the server cancels gets no answer, and ends; all end with the link.
func TestOpenRequestsOfTheServer(t *testing.T) {
	ended := make(chan error)
	l, p := linked(t, Handler{
		Request: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		},
	})
	for i := range maxRequests {
		p.write(`{"jsonrpc":"2.0","id":%d,"method":"slow"}`, i)
	}
	p.write(`{"jsonrpc":"2.0","id":99,"method":"slow"}`)
	if got := p.read(); !strings.Contains(got, `"id":99`) || !strings.Contains(got, "busy: 64 requests") {
		t.Errorf("one too many: %s", got)
	}
	p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	expect.ErrorIs(t, <-ended, context.Canceled, "cancelled")
	p.write(`{"jsonrpc":"2.0","id":100,"method":"ping"}`)
	expect.Has(t, p.read(), `"id":100,"result"`, "after a cancelled one")
	l.end(io.EOF)
	for range maxRequests - 1 {
		if err := <-ended; err != io.EOF { //nolint:errorlint // the cause itself
			t.Errorf("at the end: %v", err)
		}
	}
}

// Notifications come in order, as they were written. Progress goes to its call; lines of a log are no messages.
func TestNotifications(t *testing.T) {
	heard := make(chan string, 10)
	l, p := linked(t, Handler{Notify: func(method string, params json.RawMessage) { heard <- method + string(params) }})
	go func() {
		id := strings.Split(p.read(), `"id":`)[1][:1]
		p.write(`{"jsonrpc":"2.0","method":"one","params":{ "a":1.0 }}`)
		p.write(`{"level":"info","method":"GET"}`)
		p.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
		p.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, id)
		p.write(`{"jsonrpc":"2.0","method":"two"}`)
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{"ok":true}}`, id)
	}()
	progress := func(params json.RawMessage) { heard <- "progress" + string(params) }
	expect.Equal(t, string(expect.Value(l.Call(t.Context(), "x", json.RawMessage("{}"), progress))(t)), `{"ok":true}`)
	close(heard)
	var all []string
	for h := range heard {
		all = append(all, h)
	}
	want := `one{ "a":1.0 } notifications/cancelled{"requestId":1} progress{"progressToken":1,"progress":1} two`
	expect.Equal(t, strings.Join(all, " "), want, "%q", all)
}

// Some servers write both members of a response, one of them null.
func TestErrorNullBesideAResult(t *testing.T) {
	f := jsonrpc.Frame{Result: json.RawMessage(`{"a":1}`), Error: json.RawMessage("null")}
	expect.Equal(t, string(expect.Value(resultOf("x", f))(t)), `{"a":1}`)
}
