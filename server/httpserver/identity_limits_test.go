package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// isOver checks that a call was refused before it started, in the words of HTTP and of the protocol.
func (r reply) isOver(t testing.TB, reason string, seconds string) {
	t.Helper()
	expect.Equal(t, r.status, http.StatusTooManyRequests, "status, %+v", r)
	expect.Equal(t, r.header.Get("Retry-After"), seconds, "Retry-After")
	expect.Equal(t, r.header.Get("Content-Type"), "application/json", "type")
	var a struct {
		ID    json.RawMessage
		Error struct {
			Code int
			Data struct {
				Reason     string
				RetryAfter json.Number `json:"retry_after"`
			}
		}
	}
	expect.Must(t, json.Unmarshal([]byte(r.body), &a), "%s", r.body)
	if a.ID == nil || a.Error.Code != jsonrpc.CodeBusy || a.Error.Data.Reason != reason ||
		a.Error.Data.RetryAfter.String() != seconds {
		t.Errorf("%s", r.body)
	}
}

// TestRateOverHTTP has one identity use up its rate in one era, and be refused in every one; nothing else is.
func TestRateOverHTTP(t *testing.T) {
	var ran atomic.Int32
	s := newTestServer(t, withStore(t), func(o *server.Options) {
		o.Rate = server.Rate{PerSecond: 0.001, Burst: 2}
	}, runs(func(context.Context, funnel.Request) (funnel.Answer, error) {
		ran.Add(1)
		return funnel.Answer{Blocks: []funnel.Block{{Text: "ran"}}}, nil
	}))
	w := serveWeb(t, s)
	session := w.open()
	for i := range 2 {
		w.post(servertest.ToolCall(fmt.Sprint(i), "say", `{"text":"x"}`, ""), session).is(t, http.StatusOK, "ran")
	}
	say := servertest.ToolCall("7", "say", `{"text":"x"}`, `,"_meta":{"progressToken":"t"}`)
	w.post(say, session).isOver(t, "rate", "1000")
	w.post(say, session, header("Accept", "text/event-stream")).isOver(t, "rate", "1000")
	w.post(`{"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"observation://0123456789ab"}}`, session).isOver(t, "rate", "1000")
	message, change := modern("tools/call", "say", `"name":"say","arguments":{"text":"x"}`)
	w.post(message, change...).isOver(t, "rate", "1000")
	expect.Equal(t, ran.Load(), 2, "calls that ran")

	w.post(servertest.Ping, session).is(t, http.StatusOK, `"result":{}`)
	w.post(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`, session).is(t, http.StatusOK, `"say"`)
	w.post(message, append(change, as(otherToken))...).is(t, http.StatusOK, "ran")
	old := w.do(http.MethodPost, "/mcp", strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
	batch := w.post("["+say+","+servertest.Ping+"]", header("Mcp-Session-Id", old.header.Get("Mcp-Session-Id")))
	batch.is(t, http.StatusOK, `"code":-32010`, `"data":{"reason":"rate","retry_after":1000}`, `"id":"ping","result":{}`)

	got := w.do(http.MethodGet, "/metrics", "").body
	expect.Contains(t, got, `mcp_funnel_over_limit_total{reason="rate"} 5`+"\n", "# TYPE mcp_funnel_over_limit_total counter\n",
		"# HELP mcp_funnel_over_limit_total Calls not started")
	for _, name := range []string{"other", `"local`} {
		if strings.Contains(got, name) {
			t.Errorf("%s stands among the metrics", name)
		}
	}
}

// TestRateOnLegacyStream refuses a call on a stream that is open.
func TestRateOnLegacyStream(t *testing.T) {
	w := serveWeb(t, newTestServer(t, func(o *server.Options) { o.Rate = server.Rate{PerSecond: 0.001, Burst: 1} }))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	res, err := w.request(ctx, http.MethodGet, "/sse", "")
	expect.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	var path string
	step := 0
	for e := range eventsOf(res.Body) {
		switch step++; step {
		case 1:
			path = e.data
			w.do(http.MethodPost, path, servertest.Initialize).is(t, http.StatusAccepted)
		case 2:
			w.do(http.MethodPost, path, servertest.ToolCall("1", "say", `{"text":"x"}`, "")).is(t, http.StatusAccepted)
		case 3:
			expect.Contains(t, e.data, `"id":1,"result"`)
			w.do(http.MethodPost, path, servertest.ToolCall("2", "say", `{"text":"x"}`, "")).is(t, http.StatusAccepted)
		default:
			expect.Contains(t, e.data, `"id":2,"error"`, `"code":-32010`, `"retry_after":1000`)
			return
		}
	}
	t.Error("the stream ended")
}

// TestCallsAtOnceOverHTTP has one identity run two calls, and another go on.
func TestCallsAtOnceOverHTTP(t *testing.T) {
	started, ended := make(chan struct{}, 4), make(chan struct{}, 4)
	w := serveWeb(t, newTestServer(t, func(o *server.Options) { o.OwnerCalls = 2 }, runs(waiting(started, ended))))
	message, change := modern("tools/call", "say", `"name":"say","arguments":{"text":"x"}`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begin := func(token string) {
		go func() {
			if res, err := w.request(ctx, http.MethodPost, "/mcp", message, append(change, as(token))...); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}()
		take(t, "a call", started)
	}
	begin(testToken)
	begin(testToken)
	w.post(message, change...).isOver(t, "calls", "1")
	begin(otherToken)
	expect.Contains(t, w.do(http.MethodGet, "/metrics", "").body, `mcp_funnel_over_limit_total{reason="calls"} 1`)
	stop()
	for range 3 {
		take(t, "a cancelled call", ended)
	}
	servertest.Wait(t, "the places", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answered := make(chan int, 1)
		go func() {
			res, err := w.request(ctx, http.MethodPost, "/mcp", message, change...)
			if err == nil {
				answered <- res.StatusCode
				_ = res.Body.Close()
			}
		}()
		select {
		case <-started:
			return true
		case <-answered:
			return false
		}
	})
}

// TestQuotaOfOneIdentity has one identity keep more than it may: the model gets what fits and is told, and another
// identity keeps what it had.
func TestQuotaOfOneIdentity(t *testing.T) {
	store, err := observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: 1, OwnerQuota: 128 << 10})
	expect.Must(t, err)
	defer func() { _ = store.Close() }()
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	expect.Must(t, err)
	w := serveWeb(t, newTestServer(t, func(o *server.Options) { o.Funnel, o.Store = f, store }))
	message, change := modern("tools/call", "big", `"name":"big","arguments":{"kb":40}`)
	mine, others := change, append(change[:len(change):len(change)], as(otherToken))
	w.post(message, others...).is(t, http.StatusOK, "kept whole as obs:")
	full := func() bool {
		for range 8 {
			if got := w.post(message, mine...); !strings.Contains(got.last(), "kept whole as obs:") {
				got.is(t, http.StatusOK, "not kept (quota of this identity)", "xxxx")
				return true
			}
		}
		return false
	}
	if !full() {
		t.Error("one identity keeps more than its quota")
	}
	w.post(message, others...).is(t, http.StatusOK, "kept whole as obs:")
	expect.Contains(t, w.do(http.MethodGet, "/metrics", "").body, `mcp_funnel_over_limit_total{reason="quota"} 1`)
	list, err := store.List("other", true)
	expect.Must(t, err)
	expect.Equal(t, len(list), 2, "observations of the other identity")
	for _, o := range list {
		r, err := store.Open("other", o.ID)
		expect.Must(t, err)
		all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		expect.Must(t, err)
		expect.Equal(t, len(bytes.Trim(all, "x\n")), 0, "bytes of others")
		expect.Must(t, r.Close())
	}
}
