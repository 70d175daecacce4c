package server

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

func TestRateIsRead(t *testing.T) {
	for text, want := range map[string]Rate{
		"5,10": {5, 10}, " 0.5 , 1": {0.5, 1}, "0.001,1": {0.001, 1}, "1e6,1000000": {1e6, 1_000_000},
	} {
		var r Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	for _, bad := range []string{
		"", "5", "5,", ",5", "5,0", "5,-1", "0,5", "-1,5", "NaN,5", "Inf,5", "5,Inf", "5,5,5", "5;5", "0.0001,1", "1e7,1",
		"1,1000001", "five,ten", "5,1.5",
	} {
		var r Rate
		if err := r.UnmarshalText([]byte(bad)); err == nil || r != (Rate{}) {
			t.Errorf("%q: %v, %v", bad, r, err)
		} else {
			expect.Contains(t, err.Error(), "such as 5,10")
		}
	}
}

// newLimits returns limits whose clock the test sets.
func newLimits(r Rate, calls int) (*identityLimits, *time.Time) {
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	var l identityLimits
	l.set(r, calls)
	l.now = func() time.Time { return at }
	return &l, &at
}

// TestIdleLimitersAreDropped has 100,000 identities call a few times each, and one call without end: its rate holds all
// the time, and nothing stays of the others.
func TestIdleLimitersAreDropped(t *testing.T) {
	const identities = 100_000
	l, at := newLimits(Rate{PerSecond: 10, Burst: 5}, 0)
	begin := *at
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most, greedy := 0, 0
	for i := range identities {
		*at = at.Add(time.Millisecond)
		owner := fmt.Sprint("identity", i)
		for range 3 {
			if fault := l.acquire(owner, "tools/call"); fault != nil {
				t.Fatalf("%s: %v", owner, fault)
			}
			l.release(owner, "tools/call")
		}
		if l.acquire("greedy", "tools/call") == nil {
			greedy++
			l.release("greedy", "tools/call")
		}
		most = max(most, len(l.byOwner))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d identities: at most %d limiters at once, heap %+d KiB", identities, most, grown>>10)
	if most > 3*fewLimiters || grown > 2<<20 {
		t.Errorf("%d limiters, the heap grew by %d bytes", most, grown)
	}
	if want := 5 + int(at.Sub(begin).Seconds()*10); greedy < want-1 || greedy > want {
		t.Errorf("the greedy one had %d calls, want %d", greedy, want)
	}
	expect.Equal(t, l.running.Count(), 0, "running calls")
	runtime.KeepAlive(l)
}

// TestRefusedCallsCostNothing asks again and again: the time to wait does not grow.
func TestRefusedCallsCostNothing(t *testing.T) {
	l, at := newLimits(Rate{PerSecond: 0.5, Burst: 2}, 0)
	for range 2 {
		expect.Equal(t, l.acquire("a", "tools/call"), nil, "the burst")
	}
	for range 100 {
		fault := l.acquire("a", "resources/read")
		if fault == nil || fault.Data != (OverLimit{"rate", 2}) || fault.Code != jsonrpc.CodeBusy {
			t.Fatalf("%+v", fault)
		}
	}
	expect.Equal(t, l.acquire("b", "tools/call"), nil, "another identity")
	*at = at.Add(1500 * time.Millisecond)
	if fault := l.acquire("a", "tools/call"); fault == nil || fault.Data != (OverLimit{"rate", 1}) {
		t.Errorf("after 1.5 s: %+v", fault)
	}
	*at = at.Add(500 * time.Millisecond)
	expect.Equal(t, l.acquire("a", "tools/call"), nil, "after 2 s")
}

// TestOverTheRate has one identity use up its rate by a batch, and then try everything else.
func TestOverTheRate(t *testing.T) {
	seen := map[OverLimit]int{}
	s := newTestServer(t, withStore(t), func(o *Options) { o.Rate = Rate{PerSecond: 0.001, Burst: 2} })
	s.ObserveOverLimit(func(over OverLimit) { seen[over]++ })
	c := &client{t: t, conn: s.Connect(t.Context())}
	c.ask(strings.Replace(servertest.Initialize, "2025-06-18", "2025-03-26", 1))
	say := func(id string) string { return servertest.ToolCall(id, "say", `{"text":"said"}`, "") }
	got := c.ask("[" + say("1") + "," + say("2") + "," + say("3") + "," + servertest.Ping + "]")
	var answers []servertest.Answer
	expect.Must(t, json.Unmarshal([]byte(got), &answers))
	said, refused := 0, 0
	for _, a := range answers {
		switch {
		case a.Text() == "said":
			said++
		case a.Error != nil && a.Error.Code == jsonrpc.CodeBusy:
			refused++
			expect.Equal(t, string(a.ID), "3", "id")
		}
	}
	if said != 2 || refused != 1 || len(answers) != 4 {
		t.Errorf("%d said, %d refused: %s", said, refused, got)
	}
	expect.Contains(t, got, `"data":{"reason":"rate","retry_after":1000}`, "try again in 1000 s")
	for method, params := range map[string]string{
		"tools/list": `{}`, "ping": `{}`, "resources/list": `{}`, "prompts/list": `{}`, "logging/setLevel": `{"level":"info"}`,
	} {
		if got := c.request(method, params); !strings.Contains(got, `"result":`) {
			t.Errorf("%s: %s", method, got)
		}
	}
	c.says("resources/read", `{"uri":"observation://0123456789ab"}`, `"code":-32010`)
	c.says("tools/call", `{"name":"no such tool"}`, `"code":-32010`)
	other := s.Connect(t.Context())
	expect.Equal(t, other.Identify("other", jsonrpc.Frame{}), nil, "fault")
	o := &client{t: t, conn: other}
	o.ask(servertest.Initialize)
	expect.Equal(t, o.call("say", `{"text":"x"}`).Text(), "x", "another identity")
	expect.Equal(t, seen[OverLimit{"rate", 1000}], 3, "observed")
}

// TestCallsOfOneIdentity has one identity run as many calls as it may, over two connections.
func TestCallsOfOneIdentity(t *testing.T) {
	s := newTestServer(t, func(o *Options) { o.OwnerCalls = 2 })
	c, second := newClient(t, s), newClient(t, s)
	sleep := `{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}`
	running := []chan struct{}{c.post(sleep), second.post(sleep)}
	c.says("tools/call", `{"name":"say","arguments":{"text":"x"}}`,
		`"code":-32010`, "2 of this identity", `"data":{"reason":"calls","retry_after":1}`)
	c.says("tools/list", `{}`, `"say"`)
	other := s.Connect(t.Context())
	expect.Equal(t, other.Identify("other", jsonrpc.Frame{}), nil, "fault")
	o := &client{t: t, conn: other}
	o.ask(servertest.Initialize)
	expect.Equal(t, o.call("say", `{"text":"x"}`).Text(), "x", "another identity")
	for i, client := range []*client{c, second} {
		client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}`)
		servertest.Within(t, "a cancelled call", running[i])
	}
	expect.Equal(t, c.call("say", `{"text":"x"}`).Text(), "x", "after the others have ended")
	expect.Equal(t, s.identityLimit.running.Count(), 0, "running calls")
}

// TestBusyServerCountsNoCall refuses calls for another reason than the identity's limits, which then keep no place.
func TestBusyServerCountsNoCall(t *testing.T) {
	s := newTestServer(t, func(o *Options) { o.OwnerCalls, o.MaxCalls = 5, 1 })
	c := newClient(t, s)
	running := c.post(`{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}`)
	for range 10 {
		if got := c.call("say", `{"text":"x"}`); !strings.Contains(got.Text(), "busy: 1 calls are running") {
			t.Errorf("%+v", got)
		}
	}
	expect.Equal(t, s.identityLimit.running.Count(), 1, "running calls")
	c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":100}}`)
	servertest.Within(t, "the cancelled call", running)
}
