// Package answerer answers a question about files through a model's endpoint: a loop of at most five steps over seven
// functions.
package answerer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/loop"
	"github.com/mcp-funnel/mcp-funnel/base/runes"
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
			if looked := c.lookFirst(); looked != "" {
				return errors.New("answer from results: " + looked)
			}
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
	if r.Finish == "length" && c.reply.Text != "" && len(c.reply.Notes) == 0 {
		c.reply.Notes = append(c.reply.Notes,
			"the endpoint cut the reply off at its limit of tokens: the answer may lack its end")
	}
	if c.reply.Ungrounded = ungrounded(c.reply.Text, t.Question, c.results); len(c.reply.Ungrounded) > maxUngrounded {
		c.reply.Ungrounded = c.reply.Ungrounded[:maxUngrounded]
		c.reply.Notes = append(c.reply.Notes, fmt.Sprintf("more than %d claims are not in the files", maxUngrounded))
	}
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

// answer sets the answer. Of {"answer": …} it takes the text, even if the end is missing. Any other object must be whole,
// and a text that contains a call is no answer. An end that repeats itself is shown once.
func (c *conversation) answer(text string) {
	text = strings.TrimSpace(text)
	if object := strings.TrimRight(strings.TrimPrefix(text, "```json\n"), "`\n"); strings.HasPrefix(object, "{") {
		calls, _ := loop.TextCalls(`<tool_call>{"name":"respond","arguments":`+object+"}", c.names)
		if !json.Valid([]byte(object)) {
			text = ""
		}
		if len(calls) == 1 {
			text = cmp.Or(responseOf(json.RawMessage(calls[0].Function.Arguments)), text)
		}
	}
	packed := strings.Join(strings.Fields(text), "")
	if slices.ContainsFunc(c.names, func(name string) bool { return strings.Contains(packed, `"name":"`+name+`"`) }) {
		text = "" // a call that could not be read
	}
	once := withoutLoop(text)
	if once != text {
		c.reply.Notes = append(c.reply.Notes, "the model repeated the end of its answer: it is shown once")
	}
	c.reply.Text = strings.TrimSpace(once)
}

// responseOf returns the argument "answer" of respond. Without one it returns the only argument, if that is a text, or "".
func responseOf(args json.RawMessage) string {
	var p map[string]any
	if json.Unmarshal(args, &p) != nil {
		return ""
	}
	text, ok := p["answer"].(string)
	for _, v := range p {
		if s, isText := v.(string); !ok && isText && len(p) == 1 {
			text = s
		}
	}
	return strings.TrimSpace(text)
}

// A text loops if it ends with loopTimes times the same minLoop to maxLoop bytes.
const (
	loopTimes        = 4
	minLoop, maxLoop = 12, 1000
)

// isWordRune reports whether a character is a letter or a digit. Rulers and blanks may repeat.
func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// withoutLoop returns a text without what repeats itself at its end, up to the last sentence before that.
func withoutLoop(text string) string {
	for n := minLoop; n <= maxLoop && n*loopTimes <= len(text); n++ {
		from := len(text) - n*loopTimes
		if text[from+n:] != text[from:len(text)-n] || !strings.ContainsFunc(text[from:from+n], isWordRune) {
			continue
		}
		for from > 0 && text[from-1] == text[from-1+n] {
			from--
		}
		once := text[:runes.Complete([]byte(text[:from+n]))]
		if end := strings.LastIndexAny(once, ".!?\n"); end > 0 {
			once = once[:end+1]
		}
		return once
	}
	return text
}

// onText handles a reply without a native call. It runs calls that are written as text; other text is the answer. If no
// function has returned a result yet, it rejects the answer and runs the router's choice instead.
func (c *conversation) onText(_ int, text string) (next []chat.Message, end bool) {
	calls, rest := loop.TextCalls(text, c.names)
	var results []string
	for _, call := range calls {
		args := json.RawMessage(call.Function.Arguments)
		if call.Function.Name == "respond" {
			rest, calls = responseOf(args), nil
			break
		}
		results = append(results, "Result of "+call.Function.Name+":\n"+c.run(c.ctx, call.Function.Name, args))
	}
	if len(calls) == 0 {
		looked := c.lookFirst()
		if looked == "" {
			c.answer(rest)
			return nil, true
		}
		results = append(results, looked)
	}
	return []chat.Message{{Role: "user", Content: strings.Join(results, "\n\n")}}, false
}

// lookFirst runs the router's choice, once, if no function has returned a result yet, and returns its text for the
// model; else "".
func (c *conversation) lookFirst() string {
	args, err := json.Marshal(c.task.Routed.Arguments)
	if err != nil {
		args = []byte("{}")
	}
	if len(c.results) > 0 || c.ran[c.task.Routed.Tool+string(args)] {
		return ""
	}
	return "Result of " + c.task.Routed.Tool + ":\n" + c.run(c.ctx, c.task.Routed.Tool, args)
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
