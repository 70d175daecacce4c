package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

func TestBatch(t *testing.T) {
	c := &client{t: t, conn: newTestServer(t).Connect(t.Context())}
	c.ask(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
	got := c.ask(`[ {"jsonrpc":"2.0","id":1,"method":"ping"} , {"jsonrpc":"2.0","method":"notifications/initialized"},
		` + servertest.ToolCall("2", "steps", `{"n":1}`, `,"_meta":{"progressToken":"t"}`) + `, 5, [], {"jsonrpc":"2.0","id":9007199254740993,"method":"no/such"},
		{"jsonrpc":"2.0","id":3,"method":"ping","id":4}]`)
	lines := strings.Split(got, "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "notifications/progress") {
		t.Fatalf("want a note, then the answers: %s", got)
	}
	var answers []servertest.Answer
	expect.Must(t, json.Unmarshal([]byte(lines[1]), &answers))
	var ids []string
	for _, a := range answers {
		ids = append(ids, string(a.ID))
	}
	slices.Sort(ids)
	expect.EqualList(t, ids, []string{"1", "2", "9007199254740993", "null", "null", "null"}, "answered")
	if got := c.ask(`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); got != "" {
		t.Errorf("notifications were answered: %s", got)
	}
	expect.Contains(t, c.ask(`[{"jsonrpc":"2.0"`), "-32700")
	expect.Contains(t, c.ask(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]]`), "-32700")
}

// TestNotInBatch sends in a batch what has to come by itself.
func TestNotInBatch(t *testing.T) {
	c := &client{t: t, conn: newTestServer(t, withStore(t)).Connect(t.Context())}
	c.ask(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
	listen := servertest.StatelessRequest("subscriptions/listen", `"notifications":{}`)
	list := servertest.StatelessRequest("tools/list", "")
	for _, message := range []string{servertest.Initialize, listen, list, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`} {
		got := c.ask("[" + message + `,{"jsonrpc":"2.0","id":"p","method":"ping"}]`)
		expect.Contains(t, got, "-32600", "by itself", `{"jsonrpc":"2.0","id":"p","result":{}}`)
	}
	// Not even a first one: it would be the message that decides whether there are batches.
	fresh := &client{t: t, conn: newTestServer(t).Connect(t.Context())}
	expect.Contains(
		t, fresh.ask("["+strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1)+"]"),
		"only protocol 2025-03-26 has batches; send each message by itself",
	)
}
