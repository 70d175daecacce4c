package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// Each text of a server ends its call: with the result in it, or with one error. ID is the id of the call.
func TestOddAnswers(t *testing.T) {
	const before = "other text before its answer"
	const result, ok = `"result":{"a":1}`, `{"a":1}`
	cases := map[string]string{
		`{"jsonrpc":"2.0","id":ID.0,` + result + `}`:                                              ok,
		`{"jsonrpc":"2.0","id":"ID",` + result + `}`:                                              ok,
		`{"id":ID,` + result + `}`:                                                                ok,
		`[{"jsonrpc":"2.0","id":ID,` + result + `}]`:                                              ok,
		`[{"jsonrpc":"2.0","method":"x"}, {"jsonrpc":"2.0","id":ID,` + result + `}]`:              ok,
		`{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","id":ID,` + result + `}`:                  ok,
		`{"level":"info"} {"jsonrpc":"2.0","id":ID,` + result + `} done`:                          ok,
		`{"jsonrpc":"2.0","id":ID,` + result + `,"x":NaN}`:                                        "no JSON",
		`{"result":{"v":NaN,"id":77},"jsonrpc":"2.0","id":ID}`:                                    "no JSON",
		`{"result":{"v":Infinity},"id":"ID"}`:                                                     "no JSON",
		"{\"result\":{\"t\":\"a\tb\"},\"jsonrpc\":\"2.0\",\"id\":ID}":                             "no JSON",
		`{"result":{"t":"a \" } ","v":-Infinity},"id": ID , "jsonrpc":"2.0"}`:                     "no JSON",
		`{"result":{"content":[{"type":"text","text":"abc`:                                        "no JSON",
		`{"jsonrpc":"2.0","id":ID`:                                                                "no JSON",
		`{"jsonrpc":"2.0","id":ID,"result":{"a":"x` + "\n" + `y"}}`:                               "no JSON",
		`{"result":{"a":"x` + "\n" + `y"},"jsonrpc":"2.0","id":ID}`:                               "no JSON",
		"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {}\n}":                          "no JSON",
		`[{"jsonrpc":"2.0","id":ID,` + result + `}`:                                               "no JSON",
		`Processing... {"jsonrpc":"2.0","id":ID,` + result + `}`:                                  before,
		`50 % {of "it"} {"a":1} {"result":{},"jsonrpc":"2.0","id":ID}`:                            before,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}`:                    "boom",
		`{"jsonrpc":"2.0","error":{"code":-32603,"message":"boom"}}`:                              "boom",
		`{"jsonrpc":"2.0","id":null,` + result + `}`:                                              "no usable answer",
		`{"jsonrpc":"2.0","id":1.5,` + result + `}`:                                               "no usable answer",
		`{"jsonrpc":"2.0","id":[ID],` + result + `}`:                                              "no usable answer",
		`{"jsonrpc":"2.0","id":ID}`:                                                               "no usable answer",
		`{"id":null,` + result + `}`:                                                              "no usable answer",
		`{"jsonrpc":"2.0","id":ID,"result":{"a":1},"error":{"code":1,"message":"x"}}` + "\n" + "": "x",
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			l, p := linked(t, Handler{})
			go func() {
				id := strings.Split(p.read(), `"id":`)[1][:1]
				p.write("%s", strings.ReplaceAll(text, "ID", id))
				for p.lines.Scan() { // a notification that the call is cancelled
				}
			}()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute/2)
			defer stop()
			got, err := l.Call(ctx, "x", json.RawMessage("{}"), nil)
			if right := err == nil && string(got) == ok; want == ok && !right ||
				want != ok && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// A line that is no answer, or that repeats one in a log, ends no call; each kind is logged once.
func TestLinesBesideAnswers(t *testing.T) {
	l, p := linked(t, Handler{})
	var log bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	go func() {
		id := strings.Split(p.read(), `"id":`)[1][:1]
		for range 2 {
			for _, line := range []string{
				"hello", "[INFO] ready", `{"level":"error","error":"boom"}`, "{", `{"method":"cut`,
				`got {"jsonrpc":"2.0","id":ID,"method":"x"}`, `{"msg":{"jsonrpc":"2.0","id":ID,"result":{}}}`,
				`{"jsonrpc":"2.0","id":"x","result":NaN}`, `{"jsonrpc":"2.0","method":"x"} and more`,
				`sent {"jsonrpc":"2.0","id":ID,"result":{}}`, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"x"}}`,
			} {
				p.write("%s", strings.ReplaceAll(line, "ID", id))
			}
		}
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}()
	expect.OK(t, expect.Err(l.Call(t.Context(), "x", json.RawMessage("{}"), nil)))
	expect.Equal(t, strings.Count(log.String(), "level=WARN"), 5, "kinds:\n%s", &log)
}

// An error without an id, which some servers send for a notification, ends no call that was open before.
func TestErrorOfANotification(t *testing.T) {
	l, p := linked(t, Handler{})
	go func() {
		id := strings.Split(p.read(), `"id":`)[1][:1]
		go func() { _ = l.Notify("notifications/x", json.RawMessage("{}")) }()
		_ = p.read()
		p.write(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}`)
		time.Sleep(2 * answerGrace)
		p.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	}()
	expect.OK(t, expect.Err(l.Call(t.Context(), "x", json.RawMessage("{}"), nil)))
}
