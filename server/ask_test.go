package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func withAskTools(o *Options) { o.Tools = append(o.Tools, servertest.AskTools()...) }

// asking is a client of the sessions era that can be asked: answer gives the rest of the response to a
// request, "" for none.
type asking struct {
	*client
	answer func(servertest.Ours) string
	seen   []servertest.Ours
}

func newAsking(t *testing.T, s *Server, capabilities string, answer func(servertest.Ours) string) *asking {
	c := &asking{client: &client{t: t, conn: s.Connect(t.Context())}, answer: answer}
	expect.Contains(
		t, c.ask(strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+capabilities, 1)), `"result"`,
	)
	return c
}

// call returns the answer to a tools/call, having answered what was asked meanwhile.
func (c *asking) call(ctx context.Context, id, tool, args string) servertest.Answer {
	c.t.Helper()
	var got servertest.Answer
	c.conn.Handle(ctx, []byte(servertest.ToolCall(id, tool, args, "")), func(m []byte, last func()) error {
		if last != nil {
			got = servertest.Read(c.t, string(m))
			return nil
		}
		var o servertest.Ours
		expect.OK(c.t, json.Unmarshal(m, &o), m)
		c.seen = append(c.seen, o)
		if reply := c.answer(o); reply != "" && o.ID != nil {
			go c.conn.Handle(ctx, []byte(`{"jsonrpc":"2.0","id":`+string(o.ID)+`,`+reply+`}`), func(m []byte, _ func()) error {
				c.t.Errorf("a response was answered: %s", m)
				return nil
			})
		}
		return nil
	})
	return got
}

func TestAskInASession(t *testing.T) {
	c := newAsking(t, newTestServer(t, withAskTools), servertest.CanAll, servertest.ReplyTo)
	if got := c.call(
		t.Context(), "1", "greet", `{"model":true,"twice":true}`,
	); got.Text() != "asking\nhello Anna and Anna; the model: hi" {
		t.Errorf("%+v", got)
	}
	expect.MustEqual(t, len(c.seen), 3, "asked, times: %+v", c.seen)
	expect.Contains(t, string(c.seen[0].Params), `"message":"who? 0"`, `"requestedSchema":{"type":"object"`)
	expect.Contains(
		t, string(c.seen[2].Params), `"systemPrompt":"be brief"`, `"maxTokens":50`, `"text":"hello Anna and Anna"`,
	)
	if got := c.call(t.Context(), "2", "bad-question", `{}`); !got.Result.IsError ||
		!strings.Contains(got.Text(), `capability "tools/list"`) {
		t.Errorf("%+v", got)
	}
	c.idle()
}

// idle is a test's last look: nothing waits for an answer any more, once the tools have returned that were answered
// for.
func (c *asking) idle() {
	c.t.Helper()
	servertest.Wait(c.t, "the end of what was asked", func() bool {
		c.conn.mu.Lock()
		defer c.conn.mu.Unlock()
		return len(c.conn.awaiting) == 0
	})
}

func TestAskReplies(t *testing.T) {
	s := newTestServer(t, withAskTools)
	for _, k := range []struct{ reply, want string }{
		{`"result":{"action":"decline"}`, "the user: decline"},
		{`"result":{"action":"cancel","content":{"name":"x"}}`, "the user: cancel"},
		{`"error":{"code":-1,"message":"not \u001b[31mnow"}`, `it answered "not \x1b[31mnow" (-1)`},
		{`"error":7`, "it answered with an error"},
		{`"result":{"action":"accept","content":{"name":"` + strings.Repeat("x", maxReply) +
			`"}}`, "bytes long, over 1048576"},
		{"", "no reply within 100ms"},
	} {
		if s.options.AskTimeout = time.Minute; k.reply == "" {
			s.options.AskTimeout = 100 * time.Millisecond
		}
		c := newAsking(t, s, servertest.CanAll, func(servertest.Ours) string { return k.reply })
		got := c.call(t.Context(), "1", "greet", `{}`)
		expect.Contains(t, got.Text(), k.want)
		if len(got.Text()) > 1000 {
			t.Errorf("%.40s: the answer is %d bytes long", k.reply, len(got.Text()))
		}
		if k.reply == "" &&
			(len(c.seen) != 2 || c.seen[1].Method != "notifications/cancelled" || !strings.Contains(
				string(c.seen[1].Params), string(c.seen[0].ID),
			)) {
			t.Errorf("the client was not told that its answer is not waited for: %+v", c.seen)
		}
		c.idle()
	}
}

func TestAskNeedsTheCapability(t *testing.T) {
	s := newTestServer(t, withAskTools)
	for capabilities, lacks := range map[string]string{
		`{}`: "elicitation", `{"sampling":{}}`: "elicitation", `{"elicitation":{"url":{}}}`: "elicitation",
		`{"elicitation":{}}`: "sampling", `{"elicitation":{"form":{},"url":{}}}`: "sampling",
	} {
		c := newAsking(t, s, capabilities, servertest.ReplyTo)
		got := c.call(t.Context(), "1", "greet", `{"model":true}`)
		if !got.Result.IsError || !strings.Contains(got.Text(), `does not declare the capability "`+lacks+`"`) {
			t.Errorf("%s: %+v", capabilities, got)
		}
	}
}

// TestAskStrays sends answers nobody waits for: unknown ids, answers that come twice or too late.
func TestAskStrays(t *testing.T) {
	c := newAsking(t, newTestServer(t, withAskTools), servertest.CanAll, servertest.ReplyTo)
	twice := func(o servertest.Ours) string {
		for _, id := range []string{`"funnel-99"`, `1`, `null`, string(o.ID), string(o.ID), string(o.ID)} {
			if got := c.ask(`{"jsonrpc":"2.0","id":` + id + `,` + servertest.SayAnna + `}`); got != "" && id != "null" {
				t.Errorf("answered: %s", got)
			}
		}
		return ""
	}
	c.answer = twice
	if got := c.call(t.Context(), "1", "greet", `{}`); got.Text() != "asking\nhello Anna" {
		t.Errorf("%+v", got)
	}
	twice(c.seen[0])
	c.idle()
}

// TestAskEndsWithItsCall cancels the call while the client is being asked, and has a call's deadline end it.
func TestAskEndsWithItsCall(t *testing.T) {
	s := newTestServer(t, withAskTools, func(o *Options) { o.CallTimeout = 200 * time.Millisecond })
	c := newAsking(t, s, servertest.CanAll, func(servertest.Ours) string { return "" })
	if got := c.call(t.Context(), "1", "greet", `{}`); !got.Result.IsError || !servertest.SaysLate(got.Text()) {
		t.Errorf("at the deadline: %+v", got)
	}
	c.idle()

	s = newTestServer(t, withAskTools)
	var c2 *asking
	var asked atomic.Bool
	c2 = newAsking(t, s, servertest.CanAll, func(o servertest.Ours) string {
		if asked.CompareAndSwap(false, true) {
			go c2.conn.Handle(
				t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`), nil,
			)
		}
		return ""
	})
	if got := c2.call(t.Context(), "7", "greet", `{}`); got.ID != nil {
		t.Errorf("a cancelled call was answered: %+v", got)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if !c2.conn.waitUntil(ctx, func(c *Conn) bool { return c.running == 0 }) {
		t.Error("the tool still waits")
	}
	c2.idle()
}

// TestAskIsBounded has more questions wait than a client may have.
func TestAskIsBounded(t *testing.T) {
	c := newTestServer(t).Connect(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	ends := make(chan error, maxAsked)
	sent := make(chan bool, maxAsked)
	ask := func(ctx context.Context) error {
		_, err := c.request(ctx, func([]byte) error { sent <- true; return nil }, "roots/list", nil, time.Minute)
		return err
	}
	for range maxAsked {
		go func() { ends <- ask(ctx) }()
	}
	for range maxAsked {
		<-sent
	}
	if err := ask(ctx); !errors.Is(err, tools.ErrNoReply) || !strings.Contains(err.Error(), "64 earlier requests") {
		t.Errorf("one more: %v", err)
	}
	go func() { // the requests are told off on the same way
		for range sent {
		}
	}()
	stop()
	for range maxAsked {
		expect.ErrorIs(t, <-ends, context.Canceled)
	}
	if len(c.awaiting) > 0 {
		t.Errorf("%d requests still wait", len(c.awaiting))
	}
}

// TestListen has what belongs to no call go out on one stream, the last one that works.
func TestListen(t *testing.T) {
	c := newTestServer(t).Connect(t.Context())
	var got []string
	on := func(name string, err error) func() {
		return c.Listen(func(m []byte, answer func()) error {
			if answer != nil {
				t.Error("sent as an answer")
			}
			got = append(got, name)
			return err
		})
	}
	expect.ErrorIs(t, c.SendOwn([]byte("{}\n")), ErrNoStream)
	stop1 := on("first", nil)
	stop2 := on("second", nil)
	stop3 := on("broken", io.ErrClosedPipe)
	for _, stop := range []func(){stop3, stop2, stop1} {
		_ = c.SendOwn([]byte("{}\n"))
		stop()
		stop()
	}
	expect.ErrorIs(t, c.SendOwn([]byte("{}\n")), ErrNoStream)
	expect.Equal(t, strings.Join(got, " "), "broken second second first", "sent on %v", got)
}
