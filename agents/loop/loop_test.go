package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/chat/chattest"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// toolCall is a call as an endpoint sends it.
func toolCall(id, name, args string) any {
	return map[string]any{
		"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": args},
	}
}

// reply is a scripted reply that reports a number of prompt tokens.
func reply(prompt int, text string, calls ...any) chattest.Reply {
	message := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	raw, _ := json.Marshal(map[string]any{
		"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": prompt, "completion_tokens": 5},
	})
	return chattest.Reply{Raw: string(raw)}
}

func echo(id, text string) any   { return toolCall(id, "echo", fmt.Sprintf(`{"text":%q}`, text)) }
func submit(id, text string) any { return toolCall(id, "submit", fmt.Sprintf(`{"report":%q}`, text)) }

func failure(status int) chattest.Reply {
	return chattest.Reply{Status: status, Raw: `{"error":{"message":"out of order"}}`}
}

func repeat(n int, r chattest.Reply) []chattest.Reply { return slices.Repeat([]chattest.Reply{r}, n) }

// tools are one that returns its text, one that fails, one that panics, and the one to submit with.
func tools() []Tool {
	return []Tool{
		{Name: "echo", Schema: json.RawMessage(`{"type":"object"}`),
			Call: func(_ context.Context, args json.RawMessage) (string, error) {
				var a struct{ Text string }
				err := json.Unmarshal(args, &a)
				return a.Text, err
			}},
		{Name: "fail", Call: func(context.Context, json.RawMessage) (string, error) {
			return "half of it", errors.New("no such file")
		}},
		{Name: "panic", Call: func(context.Context, json.RawMessage) (string, error) { panic("a defect") }},
		{Name: "submit"},
	}
}

// client returns a client of a server. Its window counts reported tokens only: Count is 0.
func client(t *testing.T, s *chattest.Server, window int) *chat.Client {
	t.Helper()
	c, err := chat.New(chat.Options{URL: s.URL, Context: window, Count: func(string) int { return 0 }})
	expect.Must(t, err)
	return c
}

func options(c *chat.Client) Options {
	return Options{
		Client: c, System: "Be brief.", Messages: []chat.Message{{Role: "user", Content: "Look."}}, Tools: tools(),
		MaxTurns: 5, Submit: "submit", Nudge: "Call submit now.", Backoff: func(int) time.Duration { return 0 },
	}
}

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkPairs checks that the answers to the calls of each message follow it, in the order of the calls, and that the
// calls are valid: unique ids, names of the API, and JSON objects as arguments.
func checkPairs(t *testing.T, messages []chat.Message) {
	t.Helper()
	var open []string
	seen := map[string]bool{}
	for n, m := range messages {
		if m.Role == "tool" {
			if len(open) == 0 || open[0] != m.ToolCallID {
				t.Errorf("message %d answers %q, expected are %q", n, m.ToolCallID, open)
				return
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			t.Errorf("message %d: the calls %q have no answer", n, open)
		}
		open = nil
		for _, call := range m.ToolCalls {
			var args map[string]any
			err := json.Unmarshal([]byte(call.Function.Arguments), &args)
			if err != nil || call.ID == "" || seen[call.ID] || call.Type != "function" ||
				!validName.MatchString(call.Function.Name) {
				t.Errorf("message %d has an invalid call: %+v %v", n, call, err)
			}
			seen[call.ID] = true
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("the calls %q have no answer", open)
	}
}

// sent returns the messages of a request.
func sent(t *testing.T, r chattest.Request) (messages []chat.Message) {
	t.Helper()
	raw, _ := json.Marshal(r.Body["messages"])
	expect.Must(t, json.Unmarshal(raw, &messages))
	return messages
}

// answers returns the texts that the model was shown for its calls.
func answers(messages []chat.Message) (texts []string) {
	for _, m := range messages {
		if m.Role == "tool" {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

var ten = func() (calls []any) {
	for i := range 10 {
		calls = append(calls, echo(fmt.Sprint("c", i), fmt.Sprint("text ", i)))
	}
	return calls
}()

func TestRun(t *testing.T) {
	refusing := func(o *Options) {
		o.Accept = func(args json.RawMessage) error {
			if !strings.Contains(string(args), "good") {
				return errors.New("the report names no file")
			}
			return nil
		}
	}
	budget := func(o *Options) { o.BudgetShare = 0.7 }
	texts := func(end int) func(*Options) {
		return func(o *Options) {
			o.OnText = func(turn int, text string) ([]chat.Message, bool) {
				return []chat.Message{{Role: "user", Content: fmt.Sprintf("%d: %s?", turn, text)}}[:min(1, end-turn)], turn == end
			}
		}
	}
	for _, c := range []struct {
		name     string
		replies  []chattest.Reply
		change   func(*Options)
		ending   Ending
		turns    int
		calls    int
		requests int      // 0: as many as turns
		answers  []string // parts of what the model was shown for its calls
		text     string
		users    []string // contents of the user's messages after the task
		err      string
	}{
		{name: "submits at once", replies: repeat(1, reply(9, "done", submit("a", "good"))), ending: Submitted, turns: 1,
			answers: []string{"accepted"}, text: "done"},
		{name: "never submits", replies: repeat(9, reply(9, "", echo("same", "x"))), ending: OutOfTurns, turns: 5, calls: 5,
			answers: []string{"x", "x", "x", "x", "x"}},
		{name: "text twice", replies: []chattest.Reply{reply(9, "I think"), reply(9, "so")}, ending: Answered, turns: 2,
			text: "so", users: []string{"Call submit now."}},
		{name: "text, call, text, text", replies: []chattest.Reply{reply(9, "one"), reply(9, "", echo("", "x")), reply(9, ""),
			reply(9, "two")}, ending: Answered, turns: 4, calls: 1, answers: []string{"x"}, text: "two",
			users: []string{"Call submit now.", "Call submit now."}},
		{name: "text without a nudge", replies: repeat(1, reply(9, "42")), change: func(o *Options) { o.Nudge = "" },
			ending: Answered, turns: 1, text: "42"},
		{name: "empty replies", replies: repeat(2, reply(9, "")), ending: Answered, turns: 2,
			users: []string{"Call submit now."}},
		{name: "OnText", replies: []chattest.Reply{reply(9, "one"), reply(9, "two"), reply(9, "three")}, change: texts(2),
			ending: Answered, turns: 3, text: "three", users: []string{"0: one?", "1: two?"}},
		{name: "garbage arguments", replies: []chattest.Reply{
			reply(9, "", toolCall("a", "echo", `{"text": "x`), toolCall("b", "echo", `[1]`), toolCall("c", "echo", `null`),
				toolCall("d", "submit", `nothing`), toolCall("e", "echo", ``)),
			reply(9, "", submit("f", "good"))}, ending: Submitted, turns: 2, calls: 1,
			answers: []string{"arguments of echo are not a JSON object: unexpected end", `they were: [1]`, "an object is needed",
				"arguments of submit are not", "", "accepted"}},
		{name: "ten calls", replies: []chattest.Reply{reply(9, "", ten...), reply(9, "", submit("s", ""))}, ending: Submitted,
			turns: 2, calls: 10, answers: []string{"text 0", "text 1", "text 2", "text 3", "text 4", "text 5", "text 6",
				"text 7", "text 8", "text 9", "accepted"}},
		{name: "unknown tools", replies: []chattest.Reply{
			reply(9, "", toolCall("a", "functions.echo: Ü", `{}`), toolCall("", "", `{}`)), reply(9, "", submit("s", ""))},
			ending: Submitted, turns: 2, answers: []string{
				`no tool "functions.echo: Ü"; the tools are: echo, fail, panic, submit`, `no tool ""`, "accepted"}},
		{name: "refused, then accepted", replies: []chattest.Reply{reply(9, "", submit("a", "bad")),
			reply(9, "", submit("b", "good"))}, change: refusing, ending: Submitted, turns: 2,
			answers: []string{"not accepted: the report names no file", "accepted"}},
		{name: "refused only", replies: repeat(5, reply(9, "", submit("a", "bad"))), change: refusing, ending: OutOfTurns,
			turns: 5, answers: slices.Repeat([]string{"not accepted"}, 5)},
		{name: "submission among calls", replies: repeat(1, reply(9, "", submit("a", "bad"), echo("b", "x"),
			submit("c", "good"), submit("d", "good"))), change: refusing, ending: Submitted, turns: 1, calls: 1,
			answers: []string{"not accepted", "x", "accepted", "not run, an earlier call of submit was accepted"}},
		{name: "Accept panics", replies: repeat(2, reply(9, "", submit("a", ""))),
			change: func(o *Options) { o.MaxTurns, o.Accept = 2, func(json.RawMessage) error { panic("a defect") } },
			ending: OutOfTurns, turns: 2, answers: []string{"submit panicked: a defect", "panicked"}},
		{name: "a budget that is met exactly", replies: []chattest.Reply{reply(500, "", echo("a", "x")),
			reply(700, "", echo("b", "x")), reply(700, "", submit("c", ""))}, change: budget, ending: Submitted, turns: 3,
			calls: 2, answers: []string{"x", "x", "accepted"}},
		{name: "a budget that is exceeded", replies: []chattest.Reply{reply(500, "", echo("a", "x")),
			reply(701, "", echo("b", "x")), reply(9, "", submit("c", ""))}, change: budget, ending: OverBudget, turns: 2,
			calls: 2, answers: []string{"x", "x"}},
		{name: "a request that does not fit", change: func(o *Options) { o.Messages[0].Content = "too long" },
			ending: OverBudget, err: "does not fit"},
		{name: "500 once", replies: []chattest.Reply{failure(500), reply(9, "", submit("a", ""))}, ending: Submitted,
			turns: 1, requests: 2, answers: []string{"accepted"}},
		{name: "500 twice in each turn", replies: []chattest.Reply{failure(500), failure(429), reply(9, "", echo("a", "x")),
			failure(503), {Raw: `{"error":"overloaded"}`}, reply(9, "", submit("b", ""))}, ending: Submitted, turns: 2,
			requests: 6, calls: 1, answers: []string{"x", "accepted"}},
		{name: "500 three times", replies: repeat(3, failure(500)), ending: Failed, requests: 3, err: "out of order"},
		{name: "401", replies: repeat(3, failure(401)), ending: Failed, requests: 1, err: "--endpoint-key-file"},
		{name: "400 after a turn", replies: []chattest.Reply{reply(9, "", echo("a", "x")), failure(400)}, ending: Failed,
			turns: 1, requests: 2, calls: 1, answers: []string{"x"}, err: "out of order"},
		{name: "an error in the reply", replies: repeat(3, chattest.Reply{Raw: `{"error":{"message":"broken"}}`}),
			ending: Failed, requests: 3, err: "broken"},
		{name: "a tool that panics", replies: []chattest.Reply{reply(9, "", toolCall("a", "panic", `{}`)),
			reply(9, "", submit("b", ""))}, ending: Submitted, turns: 2, calls: 1,
			answers: []string{"error: panic panicked: a defect", "accepted"}},
		{name: "a tool that fails", replies: []chattest.Reply{reply(9, "", toolCall("a", "fail", `{}`)),
			reply(9, "", submit("b", ""))}, ending: Submitted, turns: 2, calls: 1,
			answers: []string{"half of it\nerror: no such file", "accepted"}},
		{name: "an oversized text", replies: []chattest.Reply{reply(9, "", echo("a", strings.Repeat("ü", 100))),
			reply(9, "", submit("b", ""))}, change: func(o *Options) { o.MaxToolText = 21 }, ending: Submitted, turns: 2,
			calls:   1,
			answers: []string{strings.Repeat("ü", 10) + "\n[cut: the first 20 of 200 bytes are shown]", "accepted"}},
		{name: "last turn", replies: repeat(3, reply(9, "", echo("a", "x"))),
			change: func(o *Options) { o.MaxTurns, o.LastTurn = 3, "Finish now." }, ending: OutOfTurns, turns: 3, calls: 3,
			answers: []string{"x", "x", "x"}, users: []string{"Finish now."}},
		{name: "a call in the text", replies: repeat(1, reply(9,
			`I look. <tool_call>{"name":"submit","arguments":{"report":"r"}}</tool_call>`)), ending: Submitted, turns: 1,
			answers: []string{"accepted"}, text: "I look."},
		{name: "an unknown tool in the text", replies: []chattest.Reply{
			reply(9, "```json\n{\"name\":\"rm\",\"arguments\":{}}\n```"), reply(9, "", submit("s", ""))}, ending: Submitted, turns: 2, answers: []string{`no tool "rm"`, "accepted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := chattest.New(t, c.replies...)
			o := options(client(t, s, 1000))
			if c.change != nil {
				c.change(&o)
			}
			if c.name == "a request that does not fit" {
				o.Client, _ = chat.New(chat.Options{URL: s.URL, Context: 10})
			}
			r := Run(t.Context(), o)
			requests := s.Requests()
			if c.requests == 0 {
				c.requests = c.turns
			}
			if r.Ending != c.ending || r.Turns != c.turns || r.Calls != c.calls || len(requests) != c.requests ||
				r.Text != c.text || r.Failures != c.requests-c.turns {
				t.Errorf("%d requests, %+v", len(requests), r)
			}
			expect.Equal(t, r.Ending == Submitted, json.Valid(r.Submitted), "submitted %q", r.Submitted)
			if (r.Err == nil) != (c.err == "") || r.Err != nil && !strings.Contains(r.Err.Error(), c.err) {
				t.Errorf("error %v", r.Err)
			}
			got := answers(r.Messages)
			if !slices.EqualFunc(got, c.answers, strings.Contains) {
				t.Errorf("answers %q", got)
			}
			var users []string
			for _, m := range r.Messages {
				if m.Role == "user" {
					users = append(users, m.Content)
				}
			}
			expect.EqualList(t, users[1:], c.users, "users %q", users)
			checkPairs(t, r.Messages)
			for _, request := range requests {
				checkPairs(t, sent(t, request))
				if list, _ := request.Body["tools"].([]any); len(list) != 4 {
					t.Errorf("tools %v", request.Body["tools"])
				}
			}
		})
	}
}

// TestCancelled cancels during a request, during the pause after a failure, during a tool, and before the start.
func TestCancelled(t *testing.T) {
	stopped := errors.New("stopped")
	for name, replies := range map[string][]chattest.Reply{
		"request": {{Wait: make(chan struct{})}},
		"pause":   {failure(500)},
		"tool":    {reply(9, "", echo("a", "x"), toolCall("b", "stop", `{}`), echo("c", "x"), submit("d", ""))},
		"start":   {},
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		o := options(client(t, chattest.New(t, replies...), 0))
		o.Backoff = func(int) time.Duration { return time.Hour }
		o.Tools = append(o.Tools, Tool{Name: "stop", Call: func(context.Context, json.RawMessage) (string, error) {
			stop(stopped)
			return "", ctx.Err()
		}})
		o.Progress = func(_ int, what string) {
			if name == "request" || name == "pause" && strings.Contains(what, "trying again in 1h") {
				time.AfterFunc(20*time.Millisecond, func() { stop(stopped) })
			}
		}
		if name == "start" {
			stop(stopped)
		}
		r := Run(ctx, o)
		if r.Ending != Cancelled || !errors.Is(r.Err, stopped) || r.Submitted != nil {
			t.Errorf("%s: %+v", name, r)
		}
		checkPairs(t, r.Messages)
		got := answers(r.Messages)
		if name == "tool" && (r.Calls != 2 || len(got) != 4 || !strings.Contains(got[3], "not run")) {
			t.Errorf("%q", got)
		}
	}
}

// TestBackoff checks the pauses, of which Retry-After is a part.
func TestBackoff(t *testing.T) {
	c := &conversation{}
	for _, k := range []struct {
		failures int
		err      error
		pause    time.Duration
		again    bool
	}{
		{1, errors.New("no connection"), 200 * time.Millisecond, true},
		{2, &chat.StatusError{Status: http.StatusTooManyRequests, RetryAfter: time.Second}, time.Second, true},
		{1, &chat.StatusError{Status: http.StatusBadGateway, RetryAfter: time.Hour}, 10 * time.Second, true},
		{1, &chat.StatusError{Status: http.StatusNotFound}, 0, false},
	} {
		if pause, again := c.pause(k.failures, k.err); pause != k.pause || again != k.again {
			t.Errorf("%d × %v: %s %t", k.failures, k.err, pause, again)
		}
	}
}

// TestRandomScripts runs random replies: each conversation ends within its turns and failures, and is valid.
func TestRandomScripts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"echo", "fail", "panic", "submit", "bad name", ""}
	args := []string{`{"text":"x"}`, ``, `{`, `"{}"`, "\xff", `{} {}`}
	for range 150 {
		s := chattest.Answering(t, func(int, chattest.Request) chattest.Reply {
			if r.IntN(6) == 0 {
				return failure([]int{500, 429, 400}[r.IntN(3)])
			}
			var calls []any
			for range r.IntN(4) {
				id := []string{"", "a", "b", "call00001"}[r.IntN(4)]
				calls = append(calls, toolCall(id, names[r.IntN(len(names))], args[r.IntN(len(args))]))
			}
			return reply(r.IntN(800), []string{"", "text"}[r.IntN(2)], calls...)
		})
		o := options(client(t, s, 1000))
		o.BudgetShare, o.LastTurn = 0.75, "Finish now."
		got := Run(t.Context(), o)
		known := []Ending{Submitted, Answered, OverBudget, OutOfTurns, Failed}
		if n := len(s.Requests()); !slices.Contains(known, got.Ending) || n != got.Turns+got.Failures || got.Turns > 5 {
			t.Errorf("%d requests, %+v", n, got)
		}
		checkPairs(t, got.Messages)
	}
}
