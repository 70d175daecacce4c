package funnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/stack"
	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Status of a call in receipts, sidecars and the trace.
const (
	success   = "success"
	failure   = "failure"
	timeout   = "timeout"
	cancelled = "cancelled"
)

// asked is the status of a run that ended with a question to the client. No receipt has this status, because the client
// repeats the call.
const asked = "asked"

// grace is how long a tool may take to return after its context is done. After that the call ends without waiting for
// the tool: a call must end within half a second of its deadline.
const grace = 200 * time.Millisecond

// maxError is the length of an error, in chars.
const maxError = 2000

// outcome is how a tool's run ended.
type outcome struct {
	status  string
	err     error // nil for success; what the tool answered for failure
	stopped bool  // the tool would have written more
}

// runTool runs the tool, and does not wait for one that ignores its context.
func (c *call) runTool() outcome {
	done := make(chan error, 1)
	go func() {
		stack.Grow()
		returned := false
		defer func() {
			if returned {
				return
			}
			p := recover() // nil if the tool ended its goroutine
			c.logError("a tool panicked", "tool", c.request.Tool.Name,
				"panic", c.maskForLog(fmt.Sprint(p)), "stack", string(debug.Stack()))
			done <- capture.ErrDefect
		}()
		err := c.request.Tool.Run(c.output.ctx, tools.Input{
			Args: c.request.Args, Sources: c.request.Sources, Owner: c.request.Who.Owner,
			Session: c.request.Who.ID, BytesThatFit: c.output.bytesThatFit, NewTokenCounter: c.newTokenCounter, ObservationTokens: c.observationTokens,
			Ask: c.ask, Caller: c.request.Caller, Repeated: c.request.Repeated, AsShown: c.reply.asShown, Mask: c.maskForLog,
		}, c.output)
		returned = true
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-c.output.ctx.Done():
		select {
		case err = <-done:
		case <-time.After(grace):
			err = c.output.ctx.Err()
			c.logError("a tool goes on after its call has ended", "tool", c.request.Tool.Name)
		}
	}
	o := outcome{status: failure, err: err, stopped: true}
	switch {
	case errors.Is(context.Cause(c.output.ctx), tools.ErrAsked) && c.ctx.Err() == nil: // whatever the tool returned
		o.status, o.err = asked, tools.ErrAsked
	case err == nil:
		return outcome{status: success}
	case errors.Is(err, capture.ErrDefect):
	case errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		o.status = timeout
	case c.ctx.Err() != nil:
		o.status = cancelled
	}
	return o
}

// newTokenCounter is the [tools.Input.NewTokenCounter] of the call.
func (c *call) newTokenCounter() tools.TokenCounter { return tokenCounter{c.options.Counter.Tally()} }

type tokenCounter struct{ *tokens.Tally }

func (t tokenCounter) Total() (n int64, margin float64) {
	total := t.Tally.Total()
	return total.N, total.Margin
}

// observationTokens is the [tools.Input.ObservationTokens] of the call. A count without a vocabulary is returned
// unchanged.
func (c *call) observationTokens(s observations.Stats) (n int64, margin float64, ok bool) {
	t := tokens.Total{N: s.Tokens, Margin: s.TokensMargin}
	if s.Vocabulary == "" {
		return t.N, t.Margin, true
	}
	counted := tokens.Model{Encoding: tokens.Encoding(s.Vocabulary), Factor: s.Factor, Error: s.FactorError}
	t, ok = tokens.Recount(t, counted, c.options.Counter.Model())
	return t.N, t.Margin, ok
}

// ask is the [tools.Input.Ask] of the call. If the client answers by repeating the call, it cancels this run.
func (c *call) ask(ctx context.Context, q tools.Question) (json.RawMessage, error) {
	if c.request.Ask == nil {
		return tools.NoClient(ctx, q)
	}
	reply, err := c.request.Ask(ctx, q)
	if errors.Is(err, tools.ErrAsked) {
		c.stop(err)
	}
	return reply, err
}

// failureText returns the text of a failure; rest reports what happened to the output before it.
func (c *call) failureText(o outcome, rest string) string {
	var msg string
	switch {
	case o.status == timeout:
		msg = fmt.Sprintf("%s timed out after %s", c.request.Tool.Name, c.timeAllowed())
	case errors.Is(o.err, capture.ErrDefect):
		msg = c.request.Tool.Name + " " + o.err.Error()
	default:
		msg = o.err.Error()
	}
	msg = c.maskForLog(msg) // outcomeOfCall has counted its secrets
	msg = content.Clip(text.Sanitize(msg, false, text.Standalone), maxError)
	if rest != "" {
		msg += "; " + rest
	}
	return text.ErrorPrefix + msg
}

// timeAllowed returns the time the call had.
func (c *call) timeAllowed() time.Duration {
	d := time.Since(c.began)
	if deadline, ok := c.ctx.Deadline(); ok {
		d = deadline.Sub(c.began)
	}
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	default:
		return max(d.Round(time.Millisecond), 0)
	}
}
