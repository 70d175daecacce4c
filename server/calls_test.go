package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// post runs accept in order, the work beside it, as the transports do.
func (c *client) post(message string) (done chan struct{}) {
	done = make(chan struct{})
	work := c.conn.Accept(c.t.Context(), []byte(message), c.send)
	go func() {
		defer close(done)
		if work != nil {
			work()
		}
	}()
	return done
}

func (c *client) all() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.got, "\n")
}

func TestCancel(t *testing.T) {
	c := newClient(t, newTestServer(t))
	for _, id := range []string{"5", `"five"`, "9007199254740993"} {
		done := c.post(
			`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000}}}`,
		)
		for c.conn.running == 0 { // the work is counted before post returns
			t.Fatal("the call is not running")
		}
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"test"}}`)
		servertest.Within(t, "the cancelled call", done)
		expect.Equal(t, c.all(), "", "id %s: a cancelled call was answered", id)
	}
	// For unknown, finished and malformed ids nothing happens.
	for _, id := range []string{"5", `"x"`, "null", "{}", "1.5"} {
		<-c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	}
	<-c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	<-c.post(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say","arguments":{"text":"again"}}}`)
	expect.Contains(t, c.all(), `"id":5`, "again")
}

func TestDuplicateIDInFlight(t *testing.T) {
	c := newClient(t, newTestServer(t))
	done := c.post(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000}}}`)
	<-c.post(
		`{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"say","arguments":{"text":"not to run"}}}`,
	)
	<-c.post(`{"jsonrpc":"2.0","id":"\u0061","method":"ping"}`)
	got := c.all()
	expect.Contains(t, got, `"id":null`, "is in flight")
	if strings.Contains(got, "not to run") || strings.Contains(got, `"result"`) {
		t.Errorf("the second request ran: %s", got)
	}
	c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	servertest.Within(t, "the first call", done)
}

func TestBusy(t *testing.T) {
	c := newClient(t, newTestServer(t, func(o *Options) { o.MaxCalls = 2 }))
	var running []chan struct{}
	for i := range 2 {
		running = append(
			running,
			c.post(
				fmt.Sprintf(
					`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000}}}`, 100+i,
				),
			),
		)
	}
	got := c.call("say", `{"text":"x"}`)
	if !got.Result.IsError || !strings.Contains(got.Text(), "busy: 2 calls are running") {
		t.Errorf("a third call: %+v", got)
	}
	if got := servertest.Read(t, c.request("prompts/list", `{}`)); got.Error == nil ||
		got.Error.Code != jsonrpc.CodeBusy {
		t.Errorf("another method: %+v", got)
	}
	c.says("ping", `{}`, `"result":{}`)
	for i, done := range running {
		c.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, 100+i))
		servertest.Within(t, "a cancelled call", done)
	}
	if got := c.call("say", `{"text":"x"}`); got.Text() != "x" {
		t.Errorf("after the others have ended: %+v", got)
	}
}

// TestDeafTools has tools that ignore their context: they are answered for at the deadline, and
// keep their place until they end.
func TestDeafTools(t *testing.T) {
	release := make(chan struct{})
	deaf := tools.New(tools.Tool{Name: "deaf", Title: "Deaf", Description: "Hears nothing."},
		func(context.Context, struct{}, tools.Input, tools.Output) error { <-release; return nil })
	s := newTestServer(
		t, func(o *Options) { o.Tools, o.MaxCalls, o.CallTimeout = append(o.Tools, deaf), 1, 50*time.Millisecond },
	)
	c := newClient(t, s)
	got := c.call("deaf", `{}`)
	if !got.Result.IsError || !servertest.SaysLate(got.Text()) {
		t.Errorf("at the deadline: %+v", got)
	}
	if got := c.call("say", `{"text":"x"}`); !strings.Contains(got.Text(), "busy") {
		t.Errorf("while it still runs: %+v", got)
	}
	close(release)
	s.options.CallTimeout = time.Minute // the next call is to be answered, on any machine
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if !c.conn.waitUntil(ctx, func(c *Conn) bool { return c.running == 0 }) {
		t.Fatal("the tool never ended")
	}
	if got := c.call("say", `{"text":"x"}`); got.Text() != "x" {
		t.Errorf("after it has ended: %+v", got)
	}
}

// TestOverdueLayer has the funnel itself not come back.
func TestOverdueLayer(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t, func(o *Options) {
		o.CallTimeout = 50 * time.Millisecond
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	hang := make(chan struct{})
	s.run = func(context.Context, funnel.Request) (funnel.Answer, error) {
		<-hang
		return funnel.Answer{Blocks: []funnel.Block{{Text: "too late"}}}, nil
	}
	c := newClient(t, s)
	done := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say"}}`)
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if !c.conn.waitUntil(ctx, func(c *Conn) bool { return c.unanswered == 0 }) {
		t.Fatal("never answered")
	}
	close(hang)
	servertest.Within(t, "the call", done)
	expect.Contains(t, c.all(), `"isError":true`, "no answer within 50ms")
	if strings.Contains(c.all(), "too late") {
		t.Error("answered twice")
	}
	expect.Contains(t, log.String(), "overdue")
}

// TestOverdueAnswerIsOut has a call end while it is answered for: what the answer goes by ends with the call.
func TestOverdueAnswerIsOut(t *testing.T) {
	s := newTestServer(t, func(o *Options) { o.CallTimeout = time.Millisecond })
	answering := make(chan struct{})
	s.run = func(context.Context, funnel.Request) (funnel.Answer, error) {
		<-answering
		return funnel.Answer{}, nil
	}
	var out atomic.Bool
	newClient(t, s).conn.Handle(t.Context(), []byte(servertest.ToolCall("1", "say", "{}", "")), func([]byte, func()) error {
		close(answering)
		time.Sleep(50 * time.Millisecond) // a call that does not wait has ended by then
		out.Store(true)
		return nil
	})
	if !out.Load() {
		t.Error("the call ended before its answer was out")
	}
}

func TestProgress(t *testing.T) {
	c := newClient(t, newTestServer(t))
	got := c.request("tools/call", `{"name":"steps","arguments":{"n":5},"_meta":{"progressToken":9007199254740993}}`)
	expect.Contains(
		t, got, `"progressToken":9007199254740993,"progress":1,"total":5,"message":"step"`, `"text":"done"`,
	)
	got = c.request("tools/call", `{"name":"steps","arguments":{"n":5}}`)
	if strings.Contains(got, "notifications/progress") {
		t.Errorf("progress that nobody asked for: %s", got)
	}
	// The message came with 2025-03-26.
	old := &client{t: t, conn: newTestServer(t).Connect(t.Context())}
	old.ask(strings.Replace(servertest.Initialize, "2025-06-18", "2024-11-05", 1))
	got = old.request("tools/call", `{"name":"steps","arguments":{"n":1},"_meta":{"progressToken":"t"}}`)
	expect.Contains(t, got, `"progressToken":"t","progress":1,"total":1}`)
}

func TestProgressGrows(t *testing.T) {
	var got []string
	n := &jsonrpc.Notifier{Token: json.RawMessage("1"), Last: -1, Send: func(m []byte, _ func()) error {
		got = append(got, string(m))
		return nil
	}}
	for _, done := range []int64{0, 0, 5, 3, 5, 6} {
		n.Progress(done, -1, "")
	}
	if len(got) != 3 || strings.Contains(got[0], "total") {
		t.Errorf("%q", got)
	}
}

// TestHeartbeat has tools say nothing, or nothing more, for over a second.
func TestHeartbeat(t *testing.T) {
	for _, k := range []struct {
		first int64 // progress told at once; 0: none
		want  string
	}{{0, `"progress":0.001,"message":"`}, {40, `"progress":40.001,"total":90,"message":"`}} {
		s := newTestServer(t)
		got := make(chan string, 100)
		ended := make(chan bool)
		s.run = func(_ context.Context, r funnel.Request) (funnel.Answer, error) {
			if k.first > 0 {
				r.Progress(k.first, 90, "")
				for strings.Contains(<-got, " so far") { // a heartbeat, of a machine that took a second until here
				}
			}
			select {
			case m := <-got:
				expect.Contains(t, m, k.want)
			case <-time.After(5 * time.Minute):
				t.Error("silent for 10 s")
			}
			r.Progress(k.first+1, 90, "")
			m := <-got
			for strings.Contains(m, " so far") { // another heartbeat, of a busy machine
				m = <-got
			}
			expect.Contains(t, m, fmt.Sprintf(`"progress":%d,"total":90`, k.first+1))
			close(ended)
			return funnel.Answer{}, nil
		}
		var last atomic.Bool
		newClient(t, s).conn.Handle(t.Context(), []byte(servertest.ToolCall("1", "say", `{"text":"x"}`, `,"_meta":{"progressToken":7}`)), func(m []byte, answer func()) error {
			if last.Load() {
				t.Errorf("after the answer: %s", m)
			}
			last.Store(answer != nil)
			got <- string(m)
			return nil
		})
		<-ended
		time.Sleep(jsonrpc.HeartbeatInterval + jsonrpc.HeartbeatInterval/4) // as long as the next would take
	}
}
