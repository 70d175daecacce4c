package stdio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
)

func TestBatchAtEOF(t *testing.T) {
	s := newTestServer(t)
	for range 20 {
		p := servePipe(t, t.Context(), s)
		p.write(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
		p.write(
			"[" + servertest.ToolCall(
				"1", "sleep", `{"ms":3}`, "",
			) + "," + servertest.ToolCall("2", "sleep", `{"ms":5}`, "") + "]",
		)
		_ = p.in.Close()
		p.read()
		line, err := p.out.ReadBytes('\n')
		if err != nil || line[0] != '[' || !strings.Contains(string(line), "slept 3") ||
			!strings.Contains(string(line), "slept 5") {
			t.Fatalf("%v: %s", err, line)
		}
	}
}

// TestClientRootsOverStdio has the server ask by itself, and a call that comes at once wait for the answer.
func TestClientRootsOverStdio(t *testing.T) {
	g := servertest.NewGranted(t)
	p := servePipe(
		t, t.Context(),
		newTestServer(t, func(o *server.Options) { o.Tools, o.Sources = append(o.Tools, g.Tools()...), g.Sources }),
	)
	p.write(
		strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+servertest.CanRoots, 1),
		servertest.Initialized, servertest.ToolCall("1", "find", `{"glob":"**/*.txt"}`, ""),
	)
	p.read()
	q, _ := p.read()
	expect.MustEqual(t, q.Method, "roots/list", q)
	p.write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + g.Says("work/two") + `}`)
	if m, _ := p.read(); string(m.ID) != "1" || !strings.Contains(string(m.Result), "two.txt") ||
		strings.Contains(string(m.Result), "sub.txt") {
		t.Errorf("%+v: %s", m, m.Result)
	}
	_ = p.in.Close()
	expect.OK(t, p.end())
}

// TestAskOverStdio tries both eras on one connection, over real pipes.
func TestAskOverStdio(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t, withAskTools))
	next := func() (m servertest.Message) {
		t.Helper()
		m, ok := p.read()
		if !ok {
			t.Fatal("the server has ended")
		}
		return m
	}
	p.write(strings.Replace(servertest.Initialize, `"capabilities":{}`, `"capabilities":`+servertest.CanAll, 1))
	next()
	p.write(servertest.ToolCall("1", "greet", `{"model":true}`, ""))
	for _, reply := range []string{servertest.SayAnna, servertest.SayModel} {
		q := next()
		p.write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + reply + `}`)
	}
	if got := next(); string(got.ID) != "1" || !strings.Contains(string(got.Result), "hello Anna; the model: hi") {
		t.Errorf("the sessions era: %+v", got)
	}
	p.write(servertest.ToolCall("2", "greet", `{}`, ","+servertest.MetaWith(servertest.CanAll)))
	var r servertest.Round
	if err := json.Unmarshal(next().Result, &r.Result); err != nil || r.Result.ResultType != "input_required" {
		t.Fatalf("%+v, %v", r, err)
	}
	p.write(
		servertest.ToolCall(
			"3", "greet", `{}`, ","+r.Again(`{"q1":`+servertest.Anna+`}`)+servertest.MetaWith(servertest.CanAll),
		),
	)
	if got := next(); string(got.ID) != "3" || !strings.Contains(string(got.Result), "hello Anna") {
		t.Errorf("the stateless era: %+v", got)
	}
	_ = p.in.Close()
	expect.OK(t, p.end())
}

// TestListenKeepsNoPlace has streams open where only one call may run, and the input end under them.
func TestListenKeepsNoPlace(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	store := servertest.NewTestStore(t)
	s := newTestServer(t, func(o *server.Options) { o.Store, o.MaxCalls = store, 1 })
	p := servePipe(t, t.Context(), s)
	for id := range 3 {
		p.write(
			fmt.Sprintf(
				`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},%s}}`,
				id, servertest.ModernMeta,
			),
		)
		if m, _ := p.read(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("%+v", m)
		}
	}
	p.write(servertest.ToolCall("9", "say", `{"text":"x"}`, ","+servertest.ModernMeta))
	if m, _ := p.read(); string(m.ID) != "9" || !strings.Contains(string(m.Result), `"text":"x"`) {
		t.Errorf("%+v", m)
	}
	_ = p.in.Close()
	ended := map[string]bool{}
	for m, ok := p.read(); ok; m, ok = p.read() {
		var result struct{ ResultType string }
		if err := json.Unmarshal(m.Result, &result); err != nil || result.ResultType != "complete" {
			t.Errorf("%v: %+v", err, m)
		}
		ended[string(m.ID)] = true
	}
	expect.Equal(t, len(ended), 3, "answered at the end: %v", ended)
	expect.OK(t, p.end())
}
