package httpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

// asReplica makes a server one of several with the same key.
func asReplica(name string) func(*server.Options) {
	return func(o *server.Options) { o.Replica, o.SessionKey = name, []byte("a key of the tests, 32 bytes long") }
}

// A session ID opens for its owner, with its key, until its age, and only unchanged.
func TestSealedIDs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	newOne := func(key string) *sealer {
		l, err := newSealer([]byte(key), time.Hour)
		expect.Must(t, err)
		l.now = func() time.Time { return now }
		return l
	}
	l, other := newOne("one key"), newOne("other key")
	content := sealed{Handshake: server.Handshake{
		Protocol: "2025-06-18", Name: "client", Capabilities: json.RawMessage(`{"roots":{}}`),
	}, Opened: now.Unix(), Replica: "a"}
	_, _ = rand.Read(content.nonce[:])
	id, left := l.seal("anna", content)
	s, ok := l.open("anna", id)
	if !ok || left != "" || s.Protocol != "2025-06-18" || s.Name != "client" || s.Replica != "a" || s.nonce != content.nonce ||
		string(s.Capabilities) != `{"roots":{}}` {
		t.Fatalf("%v %q %+v", ok, left, s)
	}
	refused := func(what string, l *sealer, owner, id string) {
		t.Helper()
		if s, ok := l.open(owner, id); ok {
			t.Errorf("%s: %+v", what, s)
		}
	}
	refused("another owner", l, "bert", id)
	refused("no owner", l, "", id)
	refused("another key", other, "anna", id)
	for _, guess := range append(guesses(id), id+"=", id+"\n", strings.Repeat(id, 10)) {
		refused(guess, l, "anna", guess)
	}
	for age, ok := range map[time.Duration]bool{
		time.Hour: true, time.Hour + time.Second: false, -maxSkew: true, -maxSkew - time.Second: false,
	} {
		now = time.Unix(content.Opened, 0).Add(age)
		if _, opened := l.open("anna", id); opened != ok {
			t.Errorf("after %s: %v", age, opened)
		}
	}
}

// An ID of a client that describes itself at length stays within its limit, and says what it leaves out.
func TestSealedIDsAreShort(t *testing.T) {
	l, err := newSealer([]byte("key"), time.Hour)
	expect.Must(t, err)
	all := `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
		`"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}%s}`
	long := strings.Repeat("x", 900)
	for _, c := range []struct{ name, more, left string }{
		{"client", "", ""},
		{"client", `,"experimental":{"a":"` + long + `"}`, "extensions among"},
		{"client", `,"extensions":{"a":"` + long + `"},"unknown":"` + long + `"`, "extensions among"},
		{strings.Repeat("\x01", 900), `,"experimental":{"a":"` + long + `"}`, "its name and version"},
	} {
		s := sealed{Handshake: server.Handshake{
			Protocol: "2025-11-25", Name: c.name, Version: "1", Capabilities: fmt.Appendf(nil, all, c.more),
		}, Opened: 1_800_000_000, Replica: strings.Repeat("r", 64)}
		l.now = func() time.Time { return time.Unix(s.Opened, 0) }
		id, left := l.seal(strings.Repeat("o", 64), s)
		got, ok := l.open(strings.Repeat("o", 64), id)
		if len(id) > maxSealed || !ok || (left == "") != (c.left == "") || !strings.Contains(left, c.left) ||
			!strings.Contains(string(got.Capabilities), `"createMessage":{}`) {
			t.Errorf("%d bytes, %v, left %q: %s", len(id), ok, left, got.Capabilities)
		}
	}
}

// Deleted sessions stay deleted here, however many an identity opens and deletes, and take bounded memory.
func TestDeletedSessionsStayDeleted(t *testing.T) {
	srv := newTestServer(t)
	s := newSessions(4, time.Hour)
	now := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return now }
	takeUp := func(owner, id string, c sealed) (*httpSession, *refusal) {
		return s.open(&httpSession{
			id: id, owner: owner, conn: newConn(t, srv), uses: 1, idle: idleness{proven: true}, sealed: &c,
		})
	}
	open := func(owner string) (string, sealed) {
		var c sealed
		_, _ = rand.Read(c.nonce[:])
		now = now.Add(time.Second)
		c.Opened = now.Unix()
		return c.nonce.connID(), c
	}
	kept, live := open("a")
	var ids []string
	var contents []sealed
	for range maxDeleted + 50 {
		id, c := open("a")
		x, no := takeUp("a", id, c)
		if no != nil {
			t.Fatal(no.text)
		}
		s.drop(x, errDeleted)
		s.release(x)
		ids, contents = append(ids, id), append(contents, c)
	}
	for i, id := range ids {
		if x, _ := takeUp("a", id, contents[i]); x != nil {
			t.Fatalf("session %d of %d came back", i, len(ids))
		}
	}
	if n := len(s.deleted["a"].opened); n > maxDeleted {
		t.Errorf("%d are remembered", n)
	}
	// Those of others, and newer ones, are not touched.
	if x, _ := takeUp("b", kept, live); x == nil {
		t.Error("a session of another identity counts as deleted")
	}
	id, c := open("a")
	if x, _ := takeUp("a", id, c); x == nil {
		t.Error("a newer session counts as deleted")
	}
	now = now.Add(2 * time.Hour)
	id, c = open("c")
	x, _ := takeUp("c", id, c)
	s.drop(x, errDeleted)
	if len(s.deleted) != 1 {
		t.Errorf("the deleted sessions of %d identities are remembered past their age", len(s.deleted))
	}
}

// A session that gave way comes back with its ID; one that was deleted does not. Two replicas keep its budget under one
// name, and a client that is ready for one is for all.
func TestSealedSessionsComeBack(t *testing.T) {
	a := serveWeb(t, newTestServer(t, asReplica("a")), func(o *Options) { o.Sessions = 1 })
	b := serveWeb(t, newTestServer(t, asReplica("b")))
	say := servertest.ToolCall("1", "say", `{"text":"x"}`, "")
	first := a.open()
	second := a.open() // the first gives way
	got := a.post(say, first)
	got.is(t, http.StatusOK, `"text":"x"`)
	expect.Contains(t, got.events[0], "began at replica a and goes on at replica a")
	if got := b.post(say, second, header("Accept", "application/json")); !strings.Contains(got.body, `"text":"x"`) {
		t.Errorf("JSON only: %+v", got)
	}
	a.do(http.MethodDelete, "/mcp", "", first).is(t, http.StatusNoContent)
	a.post(say, first).is(t, http.StatusNotFound, "session not found")
	b.post(say, first).is(t, http.StatusOK) // until its age: no replica asks another
	b.do(http.MethodDelete, "/mcp", "", second).is(t, http.StatusNoContent)
	b.post(say, second).is(t, http.StatusNotFound)
	var n nonce
	_, _ = rand.Read(n[:])
	if len(n.connID()) != 20 {
		t.Error(n.connID())
	}
	a.do(http.MethodGet, "/metrics", "").is(t, http.StatusOK, `mcp_funnel_replica_info{replica="a"} 1`)
}

// A response that reaches a replica which did not ask is refused by name, and never taken for the answer to another
// question.
func TestMisdirectedResponses(t *testing.T) {
	a := serveWeb(t, newTestServer(t, withAskTools, asReplica("a")))
	b := serveWeb(t, newTestServer(t, withAskTools, asReplica("b")))
	hello := strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	session := header("Mcp-Session-Id", a.post(hello).header.Get("Mcp-Session-Id"))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	res, err := b.request(ctx, http.MethodPost, "/mcp", servertest.ToolCall("1", "greet", `{}`, ""), session)
	expect.Must(t, err)
	defer func() { _ = res.Body.Close() }()
	for e := range eventsOf(res.Body) {
		var o servertest.Ours
		expect.Must(t, json.Unmarshal([]byte(e.data), &o))
		if o.Method == "elicitation/create" {
			expect.Contains(t, string(o.ID), `@b"`)
			reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, o.ID, servertest.Anna)
			a.post(reply, session).is(t, http.StatusMisdirectedRequest, "replica b waits for this response, and replica a got it")
			b.post(reply, session).is(t, http.StatusAccepted)
		}
		if o.Method == "" {
			expect.Contains(t, e.data, "hello Anna")
		}
	}
}
