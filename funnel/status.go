package funnel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/stack"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Status of a call, as receipts, sidecars and the trace have it.
const (
	success   = "success"
	failure   = "failure"
	timeout   = "timeout"
	cancelled = "cancelled"
)

// asked is the status of a run that ended with a question to the client. No receipt has it: the call comes again.
const asked = "asked"

// grace is how long a tool may take to return after its context is done;
// then its call goes on without it. Calls are to end within half a second of their deadline.
const grace = 200 * time.Millisecond

// maxError is how long the text of an error may be, in chars.
const maxError = 2000

// errDefect is all a model is told of a panic; value and stack are in the log.
var errDefect = errors.New("broke off: a defect in the tool, not in the call; the server's log says more")

// outcome is how a tool's run ended.
type outcome struct {
	status  string
	err     error // nil for success; what the tool answered for failure
	stopped bool  // the output is not all there would have been
}

// run runs the tool, and does not wait for one that ignores its context.
func (c *call) run() outcome {
	done := make(chan error, 1)
	go func() {
		stack.Grow()
		returned := false
		defer func() {
			if returned {
				return
			}
			p := recover() // nil where the goroutine was ended
			c.log("a tool panicked", "tool", c.r.Tool.Name, "panic", c.logged(fmt.Sprint(p)), "stack", string(debug.Stack()))
			done <- errDefect
		}()
		err := c.r.Tool.Run(c.out.ctx, tools.Input{Args: c.r.Args, Sources: c.r.Sources, Fit: c.out.fit, Weigh: c.weigh, Weighed: c.weighKept, Ask: c.ask}, c.out)
		returned = true
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-c.out.ctx.Done():
		after := time.NewTimer(grace)
		defer after.Stop()
		select {
		case err = <-done:
		case <-after.C:
			err = c.out.ctx.Err()
			c.log("a tool goes on after its call has ended", "tool", c.r.Tool.Name)
		}
	}
	switch {
	case errors.Is(context.Cause(c.out.ctx), tools.ErrAsked) && c.ctx.Err() == nil: // whatever the tool made of it
		return outcome{status: asked, err: tools.ErrAsked, stopped: true}
	case err == nil:
		return outcome{status: success}
	case errors.Is(err, errDefect):
		return outcome{status: failure, err: err, stopped: true}
	case errors.Is(c.ctx.Err(), context.DeadlineExceeded):
		return outcome{status: timeout, err: err, stopped: true}
	case c.ctx.Err() != nil:
		return outcome{status: cancelled, err: err, stopped: true}
	default:
		return outcome{status: failure, err: err, stopped: true}
	}
}

// logged is what is said of a failure, fit for the log: it may repeat the arguments. It counts nothing: it may be called
// from the tool's own goroutine.
func (c *call) logged(s string) string {
	s, _ = c.f.o.Mask.Echo(s, c.r.Args)
	return s
}

// weigh is the [tools.Input.Weigh] of the call.
func (c *call) weigh() tools.Scale { return scale{c.f.o.Counter.Tally()} }

type scale struct{ *tokens.Tally }

func (s scale) Weight() (n int64, off float64) {
	t := s.Total()
	return t.N, t.Margin
}

// weighKept is the [tools.Input.Weighed] of the call. What was kept before it was told by which model has the count it came with.
func (c *call) weighKept(s observations.Seen) (n int64, off float64, ok bool) {
	t := tokens.Total{N: s.Tokens, Margin: s.TokensMargin}
	if s.Vocabulary == "" {
		return t.N, t.Margin, true
	}
	t, ok = tokens.Recount(t, tokens.Model{Encoding: tokens.Encoding(s.Vocabulary), Factor: s.Factor, Error: s.FactorError}, c.f.o.Counter.Model())
	return t.N, t.Margin, ok
}

// ask is the [tools.Input.Ask] of the call. Once the client is to answer by repeating the call, this run has no use.
func (c *call) ask(ctx context.Context, q tools.Question) (tools.Reply, error) {
	if err := q.Check(); err != nil {
		return tools.Reply{}, err
	}
	if c.r.Ask == nil {
		return tools.NoClient(ctx, q)
	}
	reply, err := c.r.Ask(ctx, q)
	if errors.Is(err, tools.ErrAsked) {
		c.stop(err)
	}
	if err == nil && q.Form != nil && reply.Action == tools.Accepted {
		if unfit := q.Form.Fits(reply.Content); unfit != nil {
			return tools.Reply{}, fmt.Errorf("%w that fits the form: %s", tools.ErrNoReply, content.ClipBytes(unfit.Error(), 200))
		}
	}
	return reply, err
}

func (c *call) log(msg string, args ...any) {
	if c.f.o.Log != nil {
		c.f.o.Log.Error(msg, args...)
	}
}

// failureText words a failure; rest says what becomes of what was written before.
func (c *call) failureText(o outcome, rest string) string {
	var msg string
	switch {
	case o.status == timeout:
		msg = fmt.Sprintf("%s timed out after %s", c.r.Tool.Name, c.allowed())
	case errors.Is(o.err, errDefect):
		msg = c.r.Tool.Name + " " + o.err.Error()
	default:
		msg = o.err.Error()
	}
	msg = c.logged(msg) // what is masked in it was counted before anything was worded
	msg = content.Clip(foreign(msg, false, alone), maxError)
	if rest != "" {
		msg += "; " + rest
	}
	return errWord + msg
}

// allowed is the time the call had.
func (c *call) allowed() time.Duration {
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

// pathWord is a word that is, or may be, an absolute path.
var pathWord = content.Pattern(`(^|[\s"'(])(?:[A-Za-z]:)?[/\\][^\s:,;()]+`)

// cause says in a few words why something could not be kept. Paths stay out of it: they are the operator's, not the model's.
func cause(err error) string {
	var path *fs.PathError
	var link interface{ Unwrap() error }
	var errno syscall.Errno
	switch {
	case err == nil:
		return "unknown cause"
	case errors.Is(err, observations.ErrNoRoom): // it says which limit, and names no path
		return content.ClipBytes(strings.TrimPrefix(err.Error(), "not kept: "), 160)
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &path):
		return cause(path.Err)
	case errors.As(err, &link) && strings.ContainsAny(err.Error(), `/\`):
		return cause(link.Unwrap())
	}
	return content.ClipBytes(visibleLine(pathWord().ReplaceAllString(err.Error(), "$1…"), false), 160)
}
