// Package answerer answers a question about files through a model's endpoint: a loop of at most five steps over seven
// functions.
package answerer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/loop"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// Limits of one question.
const (
	maxSteps    = 5    // completions that may run functions; one more is asked for the answer
	callsAStep  = 3    // functions that are run of one reply
	maxHistory  = 1500 // bytes of an earlier answer
	maxResult   = 6000 // bytes of a function's text that are sent
	budgetShare = 0.9  // of the context window
)

// finalRequest is sent after the last step.
const finalRequest = "Give a concise final answer based on the information above."

// Answerer is an [ask.Answerer].
type Answerer struct {
	client *chat.Client
	name   string // of the model
}

// New returns an Answerer for a model. It sends nothing.
func New(client *chat.Client, name string) *Answerer { return &Answerer{client, name} }

// Answer implements [ask.Answerer].
func (a *Answerer) Answer(ctx context.Context, t ask.Task) (ask.Reply, error) {
	c := &conversation{task: t, ran: map[string]bool{}, reply: ask.Reply{By: strings.TrimSpace("model " + a.name)}}
	o := loop.Options{
		Client: a.client, System: prompts.Work("answer").System, MaxTurns: maxSteps + 1, LastTurn: finalRequest,
		Submit: "respond", OnText: c.onText, BudgetShare: budgetShare,
		Progress: func(turn int, what string) {
			if turn != c.turn {
				c.turn, c.calls = turn, 0
			}
			if t.Progress != nil {
				t.Progress(turn+1, what)
			}
		},
		Accept: func(args json.RawMessage) error {
			c.answer(responseOf(args))
			return nil
		},
	}
	for _, h := range t.History {
		o.Messages = append(o.Messages, chat.Message{Role: "user", Content: h.Question})
		if h.Answer != "" {
			o.Messages = append(o.Messages, chat.Message{Role: "assistant", Content: content.ClipEnd(h.Answer, maxHistory)})
		}
	}
	o.Messages = append(o.Messages, chat.Message{Role: "user", Content: t.Question})
	for _, f := range t.Functions {
		c.names = append(c.names, f.Name)
		o.Tools = append(o.Tools, loop.Tool{
			Name: f.Name, Description: f.Description, Schema: f.Schema,
			Call: func(ctx context.Context, args json.RawMessage) (string, error) { return c.run(ctx, f.Name, args), nil },
		})
	}
	c.names = append(c.names, "respond")
	o.Tools = append(o.Tools, loop.Tool{
		Name: "respond", Description: "Give the answer and end.",
		Schema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`),
	})
	c.ctx = ctx
	r := loop.Run(ctx, o)
	c.reply.Completions = r.Turns
	if c.reply.Text == "" && (r.Ending == loop.OutOfTurns || r.Ending == loop.OverBudget) {
		_, rest := loop.TextCalls(r.Text, c.names)
		c.answer(rest)
	}
	if r.Ending == loop.Failed || r.Ending == loop.Cancelled {
		return c.reply, r.Err
	}
	c.reply.Ungrounded = ungrounded(c.reply.Text, t.Question, c.results)
	return c.reply, nil
}

// conversation is the state of one question.
type conversation struct {
	ctx     context.Context
	task    ask.Task
	names   []string
	reply   ask.Reply
	results []string
	ran     map[string]bool // calls, by name and arguments
	turn    int
	calls   int // of this turn
}

func (c *conversation) answer(text string) { c.reply.Text = strings.TrimSpace(text) }

// responseOf returns the answer in the arguments of respond; their text if there is none.
func responseOf(args json.RawMessage) string {
	var p struct {
		Answer string `json:"answer"`
	}
	if json.Unmarshal(args, &p) == nil && p.Answer != "" {
		return p.Answer
	}
	return string(args)
}

// onText handles a reply without a native call: calls that it has as text are run; at the first step without one the
// router's choice is run; later text is the answer.
func (c *conversation) onText(turn int, text string) (next []chat.Message, end bool) {
	calls, rest := loop.TextCalls(text, c.names)
	var results []string
	for _, call := range calls {
		args := json.RawMessage(call.Function.Arguments)
		if call.Function.Name == "respond" {
			c.answer(responseOf(args))
			return nil, true
		}
		results = append(results, "Result of "+call.Function.Name+":\n"+c.run(c.ctx, call.Function.Name, args))
	}
	if len(calls) == 0 && turn > 0 {
		c.answer(rest)
		return nil, true
	}
	if len(calls) == 0 {
		args, err := json.Marshal(c.task.Routed.Arguments)
		if err != nil {
			args = []byte("{}")
		}
		results = append(results, "Result of "+c.task.Routed.Tool+":\n"+c.run(c.ctx, c.task.Routed.Tool, args))
	}
	return []chat.Message{{Role: "user", Content: strings.Join(results, "\n\n")}}, false
}

// run runs a function and returns the text for the model.
func (c *conversation) run(ctx context.Context, name string, args json.RawMessage) string {
	if c.calls++; c.calls > callsAStep {
		return fmt.Sprintf("not run: at most %d calls a step; call it again in the next one", callsAStep)
	}
	key := name + string(args)
	if c.ran[key] {
		return "you called this already, with the same arguments: use the result above, ask for something else, or answer"
	}
	c.ran[key] = true
	for _, f := range c.task.Functions {
		if f.Name != name {
			continue
		}
		text, err := f.Run(ctx, args)
		if err != nil {
			return "error: " + content.ClipEnd(err.Error(), 300)
		}
		c.reply.Steps = append(c.reply.Steps, ask.Step{Tool: name, Arguments: args})
		c.results = append(c.results, text)
		return chat.BreakControls(content.ClipEnd(text, maxResult))
	}
	return "there is no function " + content.ClipBytes(name, 60) + "; the functions are " + strings.Join(c.names, ", ")
}
