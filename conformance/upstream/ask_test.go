//go:build linux

package upstream_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// anna answers a form.
const anna = `{"action":"accept","content":{"name":"Anna","username":"anna","age":1}}`

// answer answers the server's requests until the response with this id, and returns it.
func (c *client) answer(id string, reply string) string {
	c.t.Helper()
	for {
		line := c.line()
		var m struct {
			ID     json.RawMessage
			Method string
		}
		expect.Must(c.t, json.Unmarshal([]byte(line), &m))
		switch {
		case m.Method == "" && string(m.ID) == id:
			return line
		case m.Method == "elicitation/create", m.Method == "roots/list":
			c.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, reply)
		}
	}
}

// Questions of a server of either era reach a client of either era, and their replies the server, which is called once.
func TestQuestions(t *testing.T) {
	inParallel(t)
	program := built.Program(t, "conformance/fixture")
	filled := []string{"action=accept", "anna"}
	for name, s := range map[string]struct {
		command []string
		tool    string
		want    []string
	}{
		"of the sessions era":  {sick("asks", ""), "echo", []string{"call 1: ", "ask 0", "ask 1", "Anna"}},
		"of the stateless era": {[]string{program, "-store", t.TempDir()}, "test_elicitation", filled},
		"at a URL":             {[]string{fixtureServer(t) + "/mcp"}, "test_elicitation", filled},
		"at a URL with SSE":    {[]string{fixtureServer(t) + "/sse"}, "test_elicitation", filled},
	} {
		t.Run("of a server "+name, func(t *testing.T) {
			store := t.TempDir()
			old := startWith(t, `{"elicitation":{}}`, wrapped(store, s.command...)...)
			old.send(`{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, s.tool)
			expect.Contains(t, old.answer("77", anna), s.want...)

			c := startProcess(t, wrapped(store, s.command...)...)
			meta := statelessMeta(`{"elicitation":{}}`)
			more := ""
			for i := 0; ; i++ {
				got := c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{},%s%s}`, s.tool, more, meta))
				var r struct {
					ResultType    string
					InputRequests map[string]json.RawMessage
					RequestState  string
				}
				if err := json.Unmarshal([]byte(got), &r); err != nil || i > 3 {
					t.Fatalf("%v: %s", err, got)
				}
				if r.ResultType != "input_required" {
					expect.Contains(t, got, s.want...)
					// What has ended is not sent again.
					again := c.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":{},%s%s}`, s.tool, more, meta))
					expect.Contains(t, again, "It was not sent again")
					break
				}
				for name := range r.InputRequests {
					more = fmt.Sprintf(`"requestState":%q,"inputResponses":{%q:%s},`, r.RequestState, name, anna)
				}
			}
			// A client that cannot be asked is none.
			mute := start(t, wrapped(store, s.command...)...)
			expect.Contains(t, mute.call(s.tool, "{}"), "elicitation")
		})
	}
}

// A question of one call is answered, although another call of the same client has ended meanwhile.
func TestQuestionDuringAnotherCall(t *testing.T) {
	inParallel(t)
	c := startWith(t, `{"elicitation":{}}`, wrapped(t.TempDir(), sick("asks in a call", "")...)...)
	c.send("%s", `{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"echo","arguments":{}}}
{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"rows","arguments":{}}}`)
	question := c.line()
	expect.Contains(t, question, "elicitation/create")
	expect.Contains(t, c.line(), `"id":51`)
	var q struct{ ID json.RawMessage }
	expect.Must(t, json.Unmarshal([]byte(question), &q))
	c.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, anna)
	expect.Contains(t, c.answer("50", anna), "Anna")
}

// A question is withdrawn when its call is cancelled; beside another call, when that has ended, too.
func TestQuestionOfACancelledCall(t *testing.T) {
	inParallel(t)
	for _, fault := range []string{"asks", "asks in a call"} {
		c := startWith(t, `{"elicitation":{}}`, wrapped(t.TempDir(), sick(fault, "")...)...)
		calls := `{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"echo","arguments":{}}}`
		if fault == "asks in a call" {
			calls += "\n" + `{"jsonrpc":"2.0","id":51,"method":"tools/call","params":{"name":"rows","arguments":{}}}`
		}
		c.send("%s", calls)
		question := c.line()
		expect.Contains(t, question, "elicitation/create")
		var q struct{ ID string }
		expect.Must(t, json.Unmarshal([]byte(question), &q))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":50}}`)
		next := c.line()
		if fault == "asks in a call" { // in any order
			next += c.line()
			expect.Contains(t, next, `"id":51`)
		}
		expect.Contains(t, next, "notifications/cancelled", `"requestId":"`+q.ID+`"`)
	}
}

// The roots of a client are those that a server gets.
func TestRoots(t *testing.T) {
	c := startProcess(t, wrapped(t.TempDir(), sick("asks for roots", "")...)...)
	c.request("initialize", strings.Replace(hello, "{}", `{"roots":{}}`, 1))
	c.send("%s", `{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"echo","arguments":{}}}`)
	expect.Contains(t, c.answer("77", `{"roots":[{"uri":"file:///nowhere/planted"}]}`), "call 1: ", "ask 0", "ask 1", "planted")
}

// A client of the stateless protocol hears of changes by a subscription, and the call goes on meanwhile.
func TestListening(t *testing.T) {
	c := stateless(t, wrapped(t.TempDir(), sick("tells", filepath.Join(t.TempDir(), "state"))...)...)
	c.request("tools/list", "{}")
	params := (`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,` +
		`"resourceSubscriptions":["test://1"]},` + c.meta)
	c.send(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":%s}`, params)
	expect.Contains(t, c.line(), "acknowledged")
	c.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"import","arguments":{},%s}`, c.meta)
	var all string
	for strings.Count(all, "\n") < 3 {
		all += c.line()
	}
	expect.Contains(t, all, "prompts/list_changed", "tools/list_changed", "told", `"io.modelcontextprotocol/subscriptionId":"l"`)
}

// Notifications of a server reach a client as the server writes them, and a changed tool is taken from the list.
func TestNotifications(t *testing.T) {
	c := start(t, wrapped(t.TempDir(), sick("tells", filepath.Join(t.TempDir(), "state"))...)...)
	if list := names(t, c.request("tools/list", "{}")); !strings.Contains(strings.Join(list, " "), "echo") {
		t.Errorf("tools: %q", list)
	}
	c.begin("tools/call", `{"name":"import","arguments":{}}`)
	var all string
	for strings.Count(all, "\n") < 5 {
		all += c.line()
	}
	expect.Contains(t, all, `"data":{"n":1.50}`, "notifications/prompts/list_changed", `"uri":"test://1"`, "told",
		"notifications/tools/list_changed")
	if list := names(t, c.request("tools/list", "{}")); strings.Contains(strings.Join(list, " "), "echo") {
		t.Errorf("the changed tool is listed: %q", list)
	}
	expect.Contains(t, c.call("echo", "{}"), "upstream approve")
}
