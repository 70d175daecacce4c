// Package loop runs one conversation with tools at an OpenAI-compatible endpoint. It ends when the model submits a
// result or answers with text, when a limit is reached, or when the endpoint fails.
//
// Each request has the whole conversation. Replies are not streamed, because some endpoints refuse tools with streams.
package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
)

// Tool is a tool that the model may call.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage // of the arguments, a JSON object; nil: any object
	// Call returns the text that is shown to the model; an error is shown to it as text too, after the text. args is
	// always a JSON object.
	Call func(ctx context.Context, args json.RawMessage) (string, error)
}

// Options of Run. A turn is one completion that was answered; turns count from 0.
type Options struct {
	Client   *chat.Client
	System   string         // first message; "": none
	Messages []chat.Message // after the system message: history and the task
	Tools    []Tool         // offered with every request
	MaxTurns int            // 20

	// Submit is the name of the tool whose accepted call ends the conversation; "": none. It must be one of Tools to be
	// offered, but its Call is never used.
	Submit string
	// Accept checks the arguments of a submission. Its error is shown to the model and the conversation continues.
	// nil: all are accepted.
	Accept func(args json.RawMessage) error
	// OnText decides what follows a reply without a call, which may be "": it returns messages to add, or end. No
	// messages end the conversation too. nil: calls that are written in the text are run (see [TextCalls]); else the
	// model is reminded with Nudge once, and the second text in a row ends the conversation; without a Nudge, the first
	// one does.
	OnText   func(turn int, text string) (next []chat.Message, end bool)
	Nudge    string
	LastTurn string // user message before the last turn, which asks the model to finish; "": none

	// BudgetShare is a share of the context window. The conversation ends before a turn if the last request had
	// strictly more prompt tokens. 0: no such limit; a window of 0 is unknown and has none either.
	BudgetShare float64
	// Compact returns a shorter conversation if a request does not fit the window. It is called once a turn at most; if
	// the request does not fit after it, the context budget is reached. nil: none. [Compactor] returns one.
	Compact     func(messages []chat.Message, window int) ([]chat.Message, error)
	Backoff     func(n int) time.Duration // pause after n failures; nil: 0.2 s × n, or Retry-After up to 10 s
	MaxToolText int                       // bytes of a tool's text that are shown; 64 KiB
	Progress    func(turn int, what string)
}

// Ending says why a conversation ended.
type Ending string

// The endings.
const (
	Submitted  Ending = "submitted"
	Answered   Ending = "answered" // with a text
	OverBudget Ending = "context budget reached"
	OutOfTurns Ending = "max turns reached"
	Failed     Ending = "endpoint failed"
	Cancelled  Ending = "cancelled"
)

// Result is a conversation that ended.
type Result struct {
	Ending     Ending
	Submitted  json.RawMessage // arguments of the accepted submission
	Text       string          // last text of the model
	Finish     string          // reason to finish that the endpoint gave for its last reply
	Turns      int             // completions that were answered
	Calls      int             // tool calls that were run, without submissions
	Failures   int             // requests that failed
	Usage      chat.Usage      // sums of all requests
	LastPrompt int             // prompt tokens that the endpoint reported last
	Messages   []chat.Message  // the conversation at its end; every call in it has its answer
	Err        error           // of Failed and Cancelled, and of OverBudget if a request did not fit the window
}

// conversation is one run of Run.
type conversation struct {
	o       Options
	offered []chat.Tool
	names   []string        // of the tools
	ids     map[string]bool // of calls
	cut     bool            // the calls of this turn are from a text that reached its limit of tokens
	nudged  bool            // the last reply was a text, and Nudge followed
	r       Result
}

// Run runs a conversation until it ends.
func Run(ctx context.Context, o Options) Result {
	o.MaxTurns, o.MaxToolText = cmp.Or(o.MaxTurns, 20), cmp.Or(o.MaxToolText, 64<<10)
	if o.Accept == nil {
		o.Accept = func(json.RawMessage) error { return nil }
	}
	c := &conversation{o: o, ids: map[string]bool{}}
	for _, t := range o.Tools {
		if t.Schema == nil {
			t.Schema = json.RawMessage(`{"type":"object"}`)
		}
		c.names = append(c.names, t.Name)
		c.offered = append(c.offered, chat.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	if o.System != "" {
		c.add(chat.Message{Role: "system", Content: o.System})
	}
	c.add(o.Messages...)
	for turn := 0; turn < c.o.MaxTurns && c.r.Ending == ""; turn++ {
		c.r.Ending = c.turn(ctx, turn)
	}
	c.r.Ending = cmp.Or(c.r.Ending, OutOfTurns)
	return c.r
}

// add adds messages and notes the ids of their calls, so that no new call gets one of them.
func (c *conversation) add(messages ...chat.Message) {
	for _, m := range messages {
		for _, call := range m.ToolCalls {
			c.ids[call.ID] = true
		}
	}
	c.r.Messages = append(c.r.Messages, messages...)
}

// turn asks the model once and runs its calls. It returns "" if the conversation continues.
func (c *conversation) turn(ctx context.Context, turn int) Ending {
	if ctx.Err() != nil {
		return c.cancelled(ctx)
	}
	budget := c.o.BudgetShare * float64(c.o.Client.Context())
	if budget > 0 && float64(c.r.LastPrompt)-budget > 1e-6 { // the product is rounded
		return OverBudget
	}
	if turn == c.o.MaxTurns-1 && c.o.LastTurn != "" {
		c.add(chat.Message{Role: "user", Content: c.o.LastTurn})
	}
	reply, ending := c.ask(ctx, turn)
	if ending != "" {
		return ending
	}
	c.r.Turns++
	c.r.Finish, c.cut = reply.FinishReason, false
	if len(reply.ToolCalls) == 0 && c.o.OnText == nil {
		if calls, rest := TextCalls(reply.Text, c.names); len(calls) > 0 {
			reply.ToolCalls, reply.Text = calls, rest
			c.cut = reply.FinishReason == "length"
		}
	}
	if len(reply.ToolCalls) == 0 || reply.Text != "" {
		c.r.Text = reply.Text
	}
	m := chat.Message{Role: "assistant", Content: reply.Text, ToolCalls: reply.ToolCalls}
	if len(m.ToolCalls) > 0 {
		c.nudged = false
		return c.answer(ctx, turn, m)
	}
	next, end := c.afterText(turn, reply.Text)
	if strings.TrimSpace(reply.Text) != "" { // some endpoints refuse an empty message
		c.add(m)
	}
	c.add(next...)
	if end || len(next) == 0 {
		return Answered
	}
	return ""
}

// afterText decides what follows a reply without a call.
func (c *conversation) afterText(turn int, text string) (next []chat.Message, end bool) {
	switch {
	case c.o.OnText != nil:
		return c.o.OnText(turn, text)
	case c.nudged || c.o.Nudge == "":
		return nil, true
	}
	c.nudged = true
	return []chat.Message{{Role: "user", Content: c.o.Nudge}}, false
}

// cancelled sets the error of a cancelled conversation.
func (c *conversation) cancelled(ctx context.Context) Ending {
	c.r.Err = context.Cause(ctx)
	return Cancelled
}

func (c *conversation) progress(turn int, format string, args ...any) {
	if c.o.Progress != nil {
		c.o.Progress(turn, fmt.Sprintf(format, args...))
	}
}

// ask sends the conversation until there is a reply, or returns why there is none.
func (c *conversation) ask(ctx context.Context, turn int) (chat.Reply, Ending) {
	compacted := false
	for failures := 0; ; {
		c.progress(turn, "asking the model")
		reply, err := c.o.Client.Complete(ctx, chat.Request{Messages: c.r.Messages, Tools: c.offered})
		c.count(reply.Usage)
		switch {
		case err == nil:
			return reply, ""
		case ctx.Err() != nil:
			return reply, c.cancelled(ctx)
		case errors.Is(err, chat.ErrTooLong):
			if c.r.Err = c.compact(turn, err, compacted); c.r.Err != nil {
				return reply, OverBudget
			}
			compacted = true
			continue
		}
		failures++
		c.r.Failures++
		pause, again := c.pause(failures, err)
		if !again {
			c.r.Err = err
			return reply, Failed
		}
		c.progress(turn, "request failed, trying again in %s: %v", pause, err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return reply, c.cancelled(ctx)
		}
	}
}

// count adds the usage of a request.
func (c *conversation) count(u chat.Usage) {
	c.r.Usage.Prompt += u.Prompt
	c.r.Usage.Completion += u.Completion
	c.r.Usage.Cached += u.Cached
	c.r.LastPrompt = cmp.Or(u.Prompt, c.r.LastPrompt) // 0: not reported
}

// compact shortens the conversation unless that was done, or returns an error that includes tooLong.
func (c *conversation) compact(turn int, tooLong error, done bool) error {
	if c.o.Compact == nil || done {
		return tooLong
	}
	c.progress(turn, "compacting the conversation")
	messages, err := c.o.Compact(slices.Clone(c.r.Messages), c.o.Client.Context())
	if err != nil {
		return fmt.Errorf("%w, and it cannot be compacted: %w", tooLong, err)
	}
	c.r.Messages = messages
	return nil
}

// maxFailures is how many failed requests in a row end a conversation.
const maxFailures = 3

// pause returns how long to wait before the same request is sent again, or false if it would fail again.
func (c *conversation) pause(failures int, err error) (time.Duration, bool) {
	pause := time.Duration(failures) * 200 * time.Millisecond
	if s, ok := errors.AsType[*chat.StatusError](err); ok {
		if s.Status < 500 && s.Status != http.StatusRequestTimeout && s.Status != http.StatusTooManyRequests {
			return 0, false
		}
		pause = max(pause, min(s.RetryAfter, 10*time.Second))
	}
	if c.o.Backoff != nil {
		pause = c.o.Backoff(failures)
	}
	return pause, failures < maxFailures
}
