package httpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// bus is a [Relay] among the replicas of this process. It counts what is published, by direction.
type bus struct {
	mu    sync.Mutex
	hear  []func([]byte)
	count map[string]int
}

func (b *bus) Publish(message []byte) error {
	if len(message) > 7900 {
		return fmt.Errorf("%d bytes", len(message))
	}
	var m relayed
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[m.Direction]++
	for _, heard := range b.hear {
		go heard(message)
	}
	return nil
}

func (b *bus) Hear(heard func([]byte)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hear = append(b.hear, heard)
	return func() {}
}

// With a relay a session works whatever replica its messages reach: answers, cancellations, the GET stream and its end.
func TestRelay(t *testing.T) {
	between := &bus{count: map[string]int{}}
	store := servertest.NewTestStore(t)
	id := servertest.Keep(t, store, "local", "text\n", observations.Stats{})
	replica := func(name string) *webServer {
		return serveWeb(t, newTestServer(t, withAskTools, asReplica(name), func(o *server.Options) { o.Store = store }),
			func(o *Options) { o.Relay = between })
	}
	a, b := replica("a"), replica("b")
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	hello := strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	session := header("Mcp-Session-Id", a.post(hello).header.Get("Mcp-Session-Id"))
	ask := func(do func(o servertest.Ours)) (last string) {
		t.Helper()
		res, err := b.request(ctx, http.MethodPost, "/mcp", servertest.ToolCall("1", "greet", `{}`, ""), session)
		expect.Must(t, err)
		defer func() { _ = res.Body.Close() }()
		for e := range eventsOf(res.Body) {
			var o servertest.Ours
			expect.Must(t, json.Unmarshal([]byte(e.data), &o))
			if o.Method == "elicitation/create" {
				do(o)
			}
			last = e.data
		}
		return last
	}
	// The answer to a question of b reaches a.
	expect.Contains(t, ask(func(o servertest.Ours) {
		a.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, o.ID, servertest.Anna), session).is(t, http.StatusAccepted)
	}), "hello Anna")
	// One that is too long to relay is refused, and the right replica still takes it.
	expect.Contains(t, ask(func(o servertest.Ours) {
		long := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s,"_":%q}`, o.ID, servertest.Anna, strings.Repeat("x", 9000))
		a.post(long, session).is(t, http.StatusMisdirectedRequest, "replica b waits for this response")
		b.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, o.ID, servertest.Anna), session).is(t, http.StatusAccepted)
	}), "hello Anna")
	// A cancellation that reaches a ends the call at b, which then sends no answer.
	if last := ask(func(servertest.Ours) {
		a.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, session).is(t, http.StatusAccepted)
	}); strings.Contains(last, "hello") {
		t.Errorf("the call was not cancelled: %s", last)
	}
	// A subscription at b is told on the stream at a.
	uri := "observation://" + string(id)
	b.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":%q}}`, uri), session).is(t, http.StatusOK)
	res, err := a.request(ctx, http.MethodGet, "/mcp", "", session)
	expect.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	expect.Must(t, store.Remove("local", id))
	for e := range eventsOf(res.Body) {
		if strings.Contains(e.data, "notifications/resources/updated") {
			expect.Contains(t, e.data, uri)
			break
		}
	}
	// A session that ended at a is no longer one at b.
	a.do(http.MethodDelete, "/mcp", "", session).is(t, http.StatusNoContent)
	servertest.Wait(t, "the end of the session at b", func() bool {
		return b.post(servertest.ToolCall("9", "say", `{"text":"x"}`, ""), session).status == http.StatusNotFound
	})
	between.mu.Lock()
	defer between.mu.Unlock()
	if between.count[toClient] == 0 || between.count[toReplica] == 0 || between.count[deleted] != 1 {
		t.Errorf("published: %v", between.count)
	}
}

// A client that does not read its stream keeps nobody waiting who hears messages of other replicas.
func TestRelayDoesNotWait(t *testing.T) {
	h := &httpServer{sessions: newSessions(1, time.Minute)}
	out := jsonrpc.NewOutbox(nil) // nobody reads it
	expect.Must(t, out.Send(make([]byte, jsonrpc.MaxQueued), nil))
	s := &httpSession{id: "id", owner: "local", uses: 1}
	s.stream.Store(out)
	_, no := h.sessions.open(s)
	expect.Equal(t, no == nil, true)
	h.heard(expect.Value(json.Marshal(relayed{"other", "id", "local", toClient, json.RawMessage("{}")}))(t))
}
