package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// round is an answer of the stateless era, as a client reads it.
type round struct {
	answer
	Result struct {
		ResultType    string
		Content       []struct{ Text string }
		IsError       bool
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
		RequestState string
	}
}

func metaWith(capabilities string) string {
	return strings.Replace(modernMeta, `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
}

// round makes one round of a call.
func (c *client) round(tool, args, more, capabilities string) (r round) {
	c.t.Helper()
	message := c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s%s}}`,
		tool, args, more, metaWith(capabilities)))
	if err := json.Unmarshal([]byte(message), &r); err != nil {
		c.t.Fatalf("%v: %s", err, message)
	}
	return r
}

// again is what a round adds to the next: the state, and the responses.
func (r round) again(responses string) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":%s,`, r.Result.RequestState, responses)
}

const anna = `{"action":"accept","content":{"name":"Anna"}}`

func newModern(t testing.TB, s *Server) *client { return &client{t: t, conn: s.Connect(t.Context())} }

func TestAskInRounds(t *testing.T) {
	c := newModern(t, newTestServer(t, withAskTools))
	const args = `{"model":true,"twice":true}`
	r := c.round("greet", args, "", canAll)
	for i, response := range []string{anna, `{"action":"accept","content":{"name":"Bert"}}`, `{"role":"assistant","content":[{"type":"text","text":"hi"}],"model":"m"}`} {
		name := fmt.Sprint("q", i+1)
		q, there := r.Result.InputRequests[name]
		if r.Result.ResultType != "input_required" || !there || len(r.Result.InputRequests) != 1 || r.Result.RequestState == "" || r.Result.Content != nil {
			t.Fatalf("round %d: %+v", i, r)
		}
		switch i {
		case 1:
			contains(t, string(q.Params), `"message":"who? 1"`)
		case 2:
			contains(t, q.Method+string(q.Params), "sampling/createMessage", "hello Anna and Bert")
		}
		// What is not asked for is passed over, and arguments may be spelt otherwise.
		r = c.round("greet", `{"twice": true, "model": true}`, r.again(`{"`+name+`":`+response+`,"q0":7}`), canAll)
	}
	if r.Result.ResultType != "complete" || len(r.Result.Content) != 1 || r.Result.Content[0].Text != "asking\nhello Anna and Bert; the model: hi" {
		t.Errorf("the end: %+v", r)
	}
}

// TestAskedAgain leaves the answer out, or answers what cannot be read.
func TestAskedAgain(t *testing.T) {
	c := newModern(t, newTestServer(t, withAskTools))
	first := c.round("greet", `{}`, "", canAll)
	second := c.round("greet", `{}`, first.again(`{}`), canAll)
	if _, there := second.Result.InputRequests["q1"]; !there {
		t.Errorf("left out: %+v", second)
	}
	if r := c.round("greet", `{}`, second.again(`{"q1":7}`), canAll); !r.Result.IsError || !strings.Contains(r.Result.Content[0].Text, "no reply") {
		t.Errorf("unreadable: %+v", r)
	}
	if r := c.round("greet", `{}`, second.again(`[1]`), canAll); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("no object: %+v", r)
	}
	if r := c.round("greet", `{}`, second.again(`{"q1":{"action":"decline"}}`), canAll); r.Result.Content[0].Text != "asking\nthe user: decline" {
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
	first := c.round("greet", `{"model":true}`, "", canAll)
	if r := c.round("greet", `{"model":true}`, first.again(`{"q1":`+anna+`}`), `{"elicitation":{}}`); r.Error == nil || r.Error.Code != -32021 {
		t.Errorf("%+v", r)
	}
}

// TestRequestStateIsBound tries a state on what it was not given for.
func TestRequestStateIsBound(t *testing.T) {
	s := newTestServer(t, withAskTools)
	now := time.Now()
	s.seal.now = func() time.Time { return now }
	c := newModern(t, s)
	first := c.round("greet", `{}`, "", canAll)
	state := first.Result.RequestState
	refused := func(what string, r round) {
		t.Helper()
		if r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "requestState") {
			t.Errorf("%s was taken: %+v", what, r)
		}
	}
	with := func(state string) string {
		return fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":%s},`, state, anna)
	}
	if r := c.round("greet", `{}`, with(state), canAll); r.Error != nil || r.Result.Content[0].Text != "asking\nhello Anna" {
		t.Fatalf("the state itself: %+v", r)
	}
	refused("a state for other arguments", c.round("greet", `{"twice":true}`, with(state), canAll))
	refused("a state for another tool", c.round("bad-question", `{}`, with(state), canAll))
	for at := range state {
		changed := []byte(state)
		if changed[at] = 'A'; state[at] == 'A' {
			changed[at] = 'B'
		}
		refused(fmt.Sprint("a state with a change at byte ", at), c.round("greet", `{}`, with(string(changed)), canAll))
	}
	for _, other := range []string{"x", ".", state + ".", state[:len(state)-1], state + "A", strings.SplitAfter(state, ".")[0], " " + state} {
		refused(fmt.Sprintf("%.20q", other), c.round("greet", `{}`, with(other), canAll))
	}
	stranger := newModern(t, s)
	stranger.conn.who.Owner = "somebody"
	refused("another's state", stranger.round("greet", `{}`, with(state), canAll))
	refused("another process's state", newModern(t, newTestServer(t, withAskTools)).round("greet", `{}`, with(state), canAll))
	now = now.Add(roundsLife + 2*time.Second)
	refused("an old state", c.round("greet", `{}`, with(state), canAll))
}

// TestRoundsAreBounded asks more often, and for more, than is put.
func TestRoundsAreBounded(t *testing.T) {
	endless := tools.New(tools.Tool{Name: "endless", Title: "Endless", Description: "Asks without end."},
		func(ctx context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			for i := 0; ; i++ {
				if _, err := in.Ask(ctx, tools.Question{Form: &tools.Form{Message: fmt.Sprint(i), Schema: json.RawMessage(`{"type":"object"}`)}}); err != nil {
					return err
				}
			}
		})
	c := newModern(t, newTestServer(t, func(o *Options) { o.Tools = append(o.Tools, endless) }))
	for _, k := range []struct {
		size, rounds int
		want         string
	}{{1, maxRounds, "it has answered 10 questions"}, {50 << 10, 2, "it has answered 2 questions"}} {
		r := c.round("endless", `{}`, "", canAll)
		n := 0
		for ; r.Result.ResultType == "input_required" && n < 2*maxRounds; n++ {
			r = c.round("endless", `{}`, r.again(fmt.Sprintf(`{"q%d":{"action":"accept","content":{"x":%q}}}`, n+1, strings.Repeat("x", k.size))), canAll)
		}
		if n != k.rounds || len(r.Result.Content) != 1 || !strings.Contains(r.Result.Content[0].Text, k.want) {
			t.Errorf("answers of %d bytes: %d rounds, then %+v", k.size, n, r)
		}
	}
}

// TestInterruptedRunKeepsNothing has a tool write a lot before it asks.
func TestInterruptedRunKeepsNothing(t *testing.T) {
	store := newTestStore(t)
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	if err != nil {
		t.Fatal(err)
	}
	late := tools.New(tools.Tool{Name: "late", Title: "Late", Description: "Asks late."},
		func(ctx context.Context, _ struct{}, in tools.Input, out tools.Output) error {
			if _, err := io.WriteString(out, strings.Repeat("a line of it\n", 20000)); err != nil {
				return err
			}
			_, err := in.Ask(ctx, tools.Question{Form: &tools.Form{Message: "on?", Schema: json.RawMessage(`{"type":"object"}`)}})
			if err == nil || strings.Contains(string(in.Args), "sure") {
				_, err = io.WriteString(out, "the end\n")
			}
			return err
		})
	c := newModern(t, newTestServer(t, func(o *Options) { o.Funnel, o.Store, o.Tools = f, store, append(o.Tools, late) }))
	list := func() int {
		all, err := store.List(observations.Local, true)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	r := c.round("late", `{}`, "", canAll)
	if r.Result.ResultType != "input_required" || list() != 0 {
		t.Errorf("after the question %d observations are there: %+v", list(), r)
	}
	usage, err := store.Usage()
	if err != nil || usage.Bytes != 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	r = c.round("late", `{}`, r.again(`{"q1":{"action":"accept"}}`), canAll)
	if r.Result.ResultType != "complete" || list() != 1 {
		t.Errorf("at the end %d observations are there: %+v", list(), r)
	}
}

// TestAskOverStdio tries both eras on one connection, over real pipes.
func TestAskOverStdio(t *testing.T) {
	p := servePipe(t, t.Context(), newTestServer(t, withAskTools))
	next := func() (m message) {
		t.Helper()
		m, ok := p.read()
		if !ok {
			t.Fatal("the server has ended")
		}
		return m
	}
	p.write(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+canAll, 1))
	next()
	p.write(toolCall("1", "greet", `{"model":true}`, ""))
	for _, reply := range []string{sayAnna, sayModel} {
		q := next()
		p.write(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + reply + `}`)
	}
	if got := next(); string(got.ID) != "1" || !strings.Contains(string(got.Result), "hello Anna; the model: hi") {
		t.Errorf("the sessions era: %+v", got)
	}
	p.write(toolCall("2", "greet", `{}`, ","+metaWith(canAll)))
	var r round
	if err := json.Unmarshal(next().Result, &r.Result); err != nil || r.Result.ResultType != "input_required" {
		t.Fatalf("%+v, %v", r, err)
	}
	p.write(toolCall("3", "greet", `{}`, ","+r.again(`{"q1":`+anna+`}`)+metaWith(canAll)))
	if got := next(); string(got.ID) != "3" || !strings.Contains(string(got.Result), "hello Anna") {
		t.Errorf("the stateless era: %+v", got)
	}
	_ = p.in.Close()
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
