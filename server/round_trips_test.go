package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/server/callstate"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// round makes one round of a call.
func (c *client) round(tool, args, more, capabilities string) (r servertest.Round) {
	c.t.Helper()
	message := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s%s}}`,
		tool, args, more, servertest.MetaWith(capabilities)))
	expect.Must(c.t, json.Unmarshal([]byte(message), &r), message)
	return r
}

func newModern(t testing.TB, s *Server) *client { return &client{t: t, conn: s.Connect(t.Context())} }

func TestAskInRounds(t *testing.T) {
	c := newModern(t, newTestServer(t, withAskTools))
	const args = `{"model":true,"twice":true}`
	r := c.round("greet", args, "", servertest.CanAll)
	for i, response := range []string{servertest.Anna, `{"action":"accept","content":{"name":"Bert"}}`, `{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}`} {
		name := fmt.Sprint("q", i+1)
		q, there := r.Result.InputRequests[name]
		if r.Result.ResultType != "input_required" || !there || len(r.Result.InputRequests) != 1 ||
			r.Result.RequestState == "" || r.Result.Content != nil {
			t.Fatalf("round %d: %+v", i, r)
		}
		switch i {
		case 1:
			expect.Contains(t, string(q.Params), `"message":"who? 1"`)
		case 2:
			expect.Contains(t, q.Method+string(q.Params), "sampling/createMessage", "hello Anna and Bert")
		}
		// What is not asked for is passed over, and arguments may be spelt otherwise.
		r = c.round("greet", `{"twice": true, "model": true}`, r.Again(`{"`+name+`":`+response+`,"q0":7}`), servertest.CanAll)
	}
	if r.Result.ResultType != "complete" || len(r.Result.Content) != 1 ||
		r.Result.Content[0].Text != "asking\nhello Anna and Bert; the model: hi" {
		t.Errorf("the end: %+v", r)
	}
}

// TestAskedAgain leaves the answer out, or answers what cannot be read.
func TestAskedAgain(t *testing.T) {
	c := newModern(t, newTestServer(t, withAskTools))
	first := c.round("greet", `{}`, "", servertest.CanAll)
	second := c.round("greet", `{}`, first.Again(`{}`), servertest.CanAll)
	if _, there := second.Result.InputRequests["q1"]; !there {
		t.Errorf("left out: %+v", second)
	}
	if r := c.round("greet", `{}`, second.Again(`[1]`), servertest.CanAll); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("no object: %+v", r)
	}
	if r := c.round(
		"greet", `{}`, second.Again(`{"q1":{"action":"decline"}}`), servertest.CanAll,
	); r.Result.Content[0].Text != "asking\nthe user: decline" {
		t.Errorf("declined: %+v", r)
	}
}

func TestAskInRoundsNeedsTheCapability(t *testing.T) {
	c := newModern(t, newTestServer(t, withAskTools))
	r := c.round("greet", `{}`, "", `{"sampling":{}}`)
	if r.Error == nil || r.Error.Code != -32021 || !strings.Contains(r.Error.Message, `"elicitation"`) {
		t.Fatalf("%+v", r)
	}
	if data, _ := json.Marshal(r.Error.Data); string(data) != `{"requiredCapabilities":{"elicitation":{}}}` {
		t.Errorf("%s", data)
	}
	// Declared for one request, it is not taken for granted at the next.
	first := c.round("greet", `{"model":true}`, "", servertest.CanAll)
	if r := c.round(
		"greet", `{"model":true}`, first.Again(`{"q1":`+servertest.Anna+`}`), `{"elicitation":{}}`,
	); r.Error == nil || r.Error.Code != -32021 {
		t.Errorf("%+v", r)
	}
}

// TestRequestStateIsBound tries a state on what it was not given for.
func TestRequestStateIsBound(t *testing.T) {
	s := newTestServer(t, withAskTools)
	now := time.Now()
	s.sealer.Now = func() time.Time { return now }
	c := newModern(t, s)
	first := c.round("greet", `{}`, "", servertest.CanAll)
	state := first.Result.RequestState
	refused := func(what string, r servertest.Round) {
		t.Helper()
		if r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "requestState") {
			t.Errorf("%s was taken: %+v", what, r)
		}
	}
	with := func(state string) string {
		return fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":%s},`, state, servertest.Anna)
	}
	if r := c.round("greet", `{}`, with(state), servertest.CanAll); r.Error != nil ||
		r.Result.Content[0].Text != "asking\nhello Anna" {
		t.Fatalf("the state itself: %+v", r)
	}
	refused("a state for other arguments", c.round("greet", `{"twice":true}`, with(state), servertest.CanAll))
	refused("a state for another tool", c.round("bad-question", `{}`, with(state), servertest.CanAll))
	for at := range state {
		changed := []byte(state)
		if changed[at] = 'A'; state[at] == 'A' {
			changed[at] = 'B'
		}
		refused(
			fmt.Sprint("a state with a change at byte ", at), c.round("greet", `{}`, with(string(changed)), servertest.CanAll),
		)
	}
	for _, other := range []string{"x", ".", state + ".", state[:len(state)-1], state +
		"A", strings.SplitAfter(state, ".")[0], " " + state} {
		refused(fmt.Sprintf("%.20q", other), c.round("greet", `{}`, with(other), servertest.CanAll))
	}
	stranger := newModern(t, s)
	stranger.conn.account.Owner = "somebody"
	refused("another's state", stranger.round("greet", `{}`, with(state), servertest.CanAll))
	refused(
		"another process's state",
		newModern(t, newTestServer(t, withAskTools)).round("greet", `{}`, with(state), servertest.CanAll),
	)
	now = now.Add(callstate.Lifetime + 2*time.Second)
	refused("an old state", c.round("greet", `{}`, with(state), servertest.CanAll))
}

// TestRoundsAreBounded asks more often, and for more, than is put.
func TestRoundsAreBounded(t *testing.T) {
	endless := tools.New(tools.Tool{Name: "endless", Title: "Endless", Description: "Asks without end."},
		func(ctx context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			for i := 0; ; i++ {
				if _, err := in.Ask(
					ctx, servertest.Form(fmt.Sprint(i)),
				); err != nil {
					return err
				}
			}
		})
	c := newModern(t, newTestServer(t, func(o *Options) { o.Tools = append(o.Tools, endless) }))
	for _, k := range []struct {
		size, rounds int
		want         string
	}{{1, maxRounds, "it has answered 10 questions"}, {50 << 10, 2, "it has answered 2 questions"}} {
		r := c.round("endless", `{}`, "", servertest.CanAll)
		n := 0
		for ; r.Result.ResultType == "input_required" && n < 2*maxRounds; n++ {
			r = c.round(
				"endless", `{}`,
				r.Again(fmt.Sprintf(`{"q%d":{"action":"accept","content":{"x":%q}}}`, n+1, strings.Repeat("x", k.size))),
				servertest.CanAll,
			)
		}
		if n != k.rounds || len(r.Result.Content) != 1 || !strings.Contains(r.Result.Content[0].Text, k.want) {
			t.Errorf("answers of %d bytes: %d rounds, then %+v", k.size, n, r)
		}
	}
}

// TestInterruptedRunKeepsNothing has a tool write a lot before it asks.
func TestInterruptedRunKeepsNothing(t *testing.T) {
	store := servertest.NewTestStore(t)
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	expect.Must(t, err)
	late := tools.New(tools.Tool{Name: "late", Title: "Late", Description: "Asks late."},
		func(ctx context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			if _, err := io.WriteString(out, strings.Repeat("a line of it\n", 20000)); err != nil {
				return err
			}
			_, err := in.Ask(
				ctx, servertest.Form("on?"),
			)
			if err == nil || strings.Contains(string(in.Args), "sure") {
				_, err = io.WriteString(out, "the end\n")
			}
			return err
		})
	c := newModern(t, newTestServer(t, func(o *Options) { o.Funnel, o.Store, o.Tools = f, store, append(o.Tools, late) }))
	list := func() int {
		all, err := store.List(observations.Local, true)
		expect.Must(t, err)
		return len(all)
	}
	r := c.round("late", `{}`, "", servertest.CanAll)
	if r.Result.ResultType != "input_required" || list() != 0 {
		t.Errorf("after the question %d observations are there: %+v", list(), r)
	}
	usage, err := store.Usage()
	if err != nil || usage.Bytes != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	r = c.round("late", `{}`, r.Again(`{"q1":{"action":"accept"}}`), servertest.CanAll)
	if r.Result.ResultType != "complete" || list() != 1 {
		t.Errorf("at the end %d observations are there: %+v", list(), r)
	}
}

// TestRoundsGoOnElsewhere has another server continue a call: with the same key only.
func TestRoundsGoOnElsewhere(t *testing.T) {
	keyed := func(key string) *client {
		return newModern(t, newTestServer(t, withAskTools, func(o *Options) { o.SessionKey = []byte(key) }))
	}
	const key = "a key of the tests, 32 bytes long"
	first := keyed(key).round("greet", `{}`, "", servertest.CanAll)
	again := first.Again(`{"q1":` + servertest.Anna + `}`)
	r := keyed(key).round("greet", `{}`, again, servertest.CanAll)
	if len(r.Result.Content) != 1 || r.Result.Content[0].Text != "asking\nhello Anna" {
		t.Errorf("at another server: %+v", r)
	}
	for name, other := range map[string]*client{
		"another key": keyed(strings.ToUpper(key)), "no key": newModern(t, newTestServer(t, withAskTools)),
	} {
		if r := other.round("greet", `{}`, again, servertest.CanAll); r.Error == nil ||
			!strings.Contains(r.Error.Message, "requestState is invalid") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
