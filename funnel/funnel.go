// Package funnel runs a tool, records what it wrote, and decides how much of it is shown.
//
// It sanitizes, masks and counts all text for the model.
//
// Its parts: [text] makes text fit to be shown, [policy] decides by size, [capture] reads the output, [page] holds the
// rows of paged tools, [receipt] writes receipts.
package funnel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/page"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Funnel is safe for concurrent use.
type Funnel struct {
	options  Options
	accounts *sessionAccounts
}

// New returns an error that names the limit and its range if a limit is out of range.
func New(o Options) (*Funnel, error) {
	l, err := o.Limits.WithDefaults(policy.Defaults)
	if err != nil {
		return nil, err
	}
	if err := o.Policy.Validate(); err != nil {
		return nil, err
	}
	for name, t := range o.Tools {
		if _, err := t.Limits.WithDefaults(l); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	}
	if o.Redact && o.Mask == nil {
		return nil, errors.New("redact: what is kept cannot be masked where nothing is (--redact-store with --no-mask)")
	}
	o.Limits = l
	if o.Counter == nil {
		o.Counter = tokens.New(tokens.O200k)
	}
	return &Funnel{options: o, accounts: newSessionAccounts(o.Accounts)}, nil
}

// Call runs one tool call. It returns an error only if the caller cancelled the context (no answer is due then), or
// if Request.Ask returned [tools.ErrAsked]: it returns that error and stores nothing. A failure of the tool is an
// Answer with Failed.
//
// If the context's deadline passes, the answer says so and shows what was written until then.
func (f *Funnel) Call(ctx context.Context, r Request) (Answer, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Answer{}, ctx.Err()
	}
	f.takeUsage(&r)
	r.Uncut = r.Uncut || f.options.Tools[r.Tool.Name].Uncut
	limits, err := f.options.Tools[r.Tool.Name].Limits.WithDefaults(f.options.Limits)
	if err == nil {
		limits, err = r.Limits.WithDefaults(limits)
	}
	c := &call{
		options: &f.options, accounts: f.accounts, ctx: ctx, request: r, limits: limits, began: time.Now(),
		reply: reply{mask: f.options.Mask, counter: f.options.Counter},
	}
	if err != nil {
		return c.refuse(err), nil
	}
	return c.execute()
}

// takeUsage records the usage that a request reports.
func (f *Funnel) takeUsage(r *Request) {
	r.Who = owned(r.Who)
	if r.Usage == nil {
		return
	}
	if err := f.accounts.report(r.Who, *r.Usage); err != nil && f.options.Log != nil {
		f.options.Log.Warn("the usage that a client reported is not stored", "error", err)
	}
}

// FitsPage reports whether a text of that size may be shown whole to a caller who asked for it by name.
func (f *Funnel) FitsPage(tokens, chars int64) bool {
	return tokens <= int64(f.options.Limits.PageTokens) && chars <= policy.MaxPageChars
}

// Reset sets the tokens that a session was shown to 0: its client began a new context, or compacted it.
func (f *Funnel) Reset(who Session) { f.accounts.reset(who) }

// refuse answers a call that cannot be run.
func (c *call) refuse(err error) Answer {
	o := outcome{status: failure, err: err}
	c.reply.answer.Failed = true
	account, done := c.accounts.begin(c.request.Who)
	defer done()
	d := &display{call: c, outcome: o, spent: SpentOf(account), noticed: account.Notices > 0, complete: true}
	d.decision = c.options.Policy.Decide(policy.Size{}, d.spent)
	c.reply.addText(c.failureText(o, ""))
	d.enforce()
	c.notice = d.rejected
	return c.finish(d, d.sizeReceipt(content.Text), o)
}

// execute runs the tool and returns its answer.
//
//	openOutput ─► runTool: the tool writes ─► output ─► page               rows of a paged tool
//	                                               └► capture ─► recording, edges, digest, tokens
//	display: Decide, whole or receipt, commit ─► reply ─► finish: trace
func (c *call) execute() (Answer, error) {
	spent := c.accounts.spent(c.request.Who)
	ctx, stop := context.WithCancelCause(c.ctx)
	c.stop = stop
	defer stop(nil) // ends goroutines that the tool left running
	c.openOutput(ctx, spent)
	o := c.runTool()
	c.millis = float64(time.Since(c.began).Microseconds()) / 1000
	c.output.close()
	c.captured = c.output.capture.Close()
	defer c.captured.Discard() // deletes what was not committed
	o = c.outcomeOfCall(o)
	if o.status == asked {
		return Answer{}, o.err
	}
	account, done := c.accounts.begin(c.request.Who)
	defer done()
	d := &display{call: c, outcome: o, spent: SpentOf(account), noticed: account.Notices > 0}
	if account.Report != nil {
		c.turn = account.Report.Turn
	}
	switch {
	case o.status == cancelled:
		if c.captured.Bytes > 0 {
			d.measure()
			d.store()
		}
		c.finish(d, d.receipt(), o)
		return Answer{}, c.ctx.Err()
	case c.request.Whole != nil:
		d.addRest()
		return c.finish(d, d.receipt(), o), nil
	case c.captured.Bytes > 0 || !c.output.paged || c.output.kept:
		d.showOutput()
	default:
		d.showPage()
	}
	d.enforce()
	c.notice = d.rejected
	c.files = c.opened(d)
	return c.finish(d, d.receipt(), o), nil
}

func (c *call) openOutput(ctx context.Context, spent policy.Spent) {
	o := c.options
	pageTokens := c.limits.PageTokens
	if d := o.Policy.Decide(policy.Size{}, spent); d.Limited && !d.DryRun {
		room := int(float64(d.Left) / (1 + o.Counter.Model().Error))
		pageTokens = min(pageTokens, max(room, policy.MinReceipt)) // display rejects what does not fit
	}
	c.output = &output{
		ctx:   ctx,
		mask:  o.Mask,
		paged: c.request.Tool.Paged && c.request.Whole == nil, whole: c.request.Whole != nil,
		page: page.New(pageTokens, o.Counter.Count, o.Mask.ForCall(c.request.Args)),
		capture: capture.NewWriter(capture.Options{
			HeadLines: c.limits.HeadLines, TailLines: c.limits.TailLines, Hold: c.holdLimit(),
			Expected: c.request.Expected, Counter: o.Counter, Mask: o.Mask, Redact: o.Redact, Whole: c.request.Whole,
		}),
		record:   c.newRecording,
		store:    c.storeText,
		progress: c.request.Progress,
		pace:     pace{next: time.Now()},
	}
	if !c.request.Tool.Paged && c.request.Whole == nil {
		c.output.capture.RecordWith(c.newRecording)
	}
}

// holdLimit returns how many bytes of an output's beginning stay in memory, because the output might be shown whole: a
// page, or text that costs no more than a receipt. No token is longer than 128 bytes.
func (c *call) holdLimit() int {
	limit := max(utf8.UTFMax*policy.MaxPageChars, 128*c.limits.ReceiptTokens, utf8.UTFMax*c.limits.LargeChars)
	if c.options.Policy.Disabled || c.request.Uncut {
		limit = max(limit, receipt.MaxAnswer)
	}
	return limit
}

// outcomeOfCall returns the outcome of the call, from the outcome of the tool and from what was captured.
func (c *call) outcomeOfCall(o outcome) outcome {
	if p := c.captured.Failure; p != nil && o.err == nil { // otherwise the tool's write has failed already
		c.logError("reading an output panicked", "tool", c.request.Tool.Name, "panic", c.maskForLog(fmt.Sprint(p)))
		o = outcome{status: failure, err: capture.ErrDefect, stopped: true}
	}
	if c.captured.Decoded {
		c.output.notes = append(c.output.notes, c.captured.Encoding.Note()+"; it is kept as it was written")
	}
	if c.captured.Bytes == 0 {
		c.output.kept = false // there is nothing to keep
	}
	if o.status == success && c.output.counts["exit_code"] != 0 {
		o.status = failure // of the command, not of the call
	}
	if o.err != nil {
		c.reply.answer.Failed = true
		_, n := c.options.Mask.Echo(o.err.Error(), c.request.Args)
		c.reply.masked += n
	}
	return o
}

// finish adds the images, counts and traces the answer, and returns it; that of an upstream server may be its own.
func (c *call) finish(d *display, r Receipt, o outcome) Answer {
	images := c.images()
	if c.notice {
		images = nil
	}
	for _, i := range images {
		c.reply.addImage(i)
	}
	r.ShownTokens = c.reply.shownTokens
	r.Masked = c.maskedSecrets()
	r.Millis = c.millis
	c.reply.answer.Receipts = []Receipt{r}
	if c.output != nil { // nil: the call was refused
		c.reply.answer.Extra = c.output.extra
	}
	counts := !slices.Contains([]string{trace.ViaList, trace.ViaView, trace.ViaCommand}, c.request.Via)
	if o.status != cancelled && counts { // reports hold the list already, and the answer of run what its command printed
		spent := policy.AtMost(c.reply.shownTokens, c.options.Counter.Model().Error) + policy.ImageTokens*len(images)
		pointer := r.Kept && !r.Complete
		if err := c.accounts.add(c.request.Who, shown{spent, c.notice, pointer}); err != nil {
			c.logError("the session's account could not be written", "error", err)
		}
	}
	answer, blocks := c.reply.answer, c.reply.answer.Blocks
	switch {
	case c.output == nil || c.output.result == nil || o.status == cancelled:
	case c.request.Via == trace.ViaCommand:
		answer.Failed = answer.Failed || c.output.result.Failed
	default:
		blocks = d.passResult(&answer, c.output.result)
	}
	c.trace(r, o, blocks)
	return answer
}
