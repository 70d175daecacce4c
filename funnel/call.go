package funnel

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/trace"
)

// call is one tool call on its way.
//
//	newCall ─► run: the tool writes ─► output ─► page            rows of a paged tool
//	                                         └► pass ─► Recording, edges, digest, tally, hold
//	answerTo ◄─ close the pass ─► shown: Decide, whole or receipt, commit ─► say ─► trace
type call struct {
	f      *Funnel
	ctx    context.Context
	stop   context.CancelCauseFunc // of the tool's context, below ctx
	r      Request
	limits Limits
	began  time.Time
	millis float64

	out     *output
	answer  Answer
	shown   int64 // tokens of the answer's text
	weight  int   // tokens of weighed, the text that was counted last
	weighed string
	found   int // secrets masked beside those in the output
	obs     *observations.Observation
}

func newCall(ctx context.Context, f *Funnel, r Request) *call {
	return &call{f: f, ctx: ctx, r: r, limits: f.o.Limits, began: time.Now()}
}

// refuse answers a call that cannot be made.
func (c *call) refuse(err error) Answer {
	o := outcome{status: failure, err: err}
	c.answer.Failed = true
	c.say(c.failureText(o, ""))
	return c.finish(Receipt{Status: failure, Kind: string(content.Text), Complete: true, TokensExact: true, Decision: Decision{Verdict: OK}}, o)
}

// answerTo runs the tool and makes its answer.
func (c *call) answerTo() (Answer, error) {
	spent := c.f.spent.of(c.r.Who)
	pageTokens := c.limits.PageTokens
	if p := c.f.o.Policy; p.Window > 0 && !p.DryRun && !p.Disabled {
		pageTokens = min(pageTokens, max(p.Decide(Size{}, spent).Left, MinReceipt)) // what does not fit is rejected below
	}
	ctx, stop := context.WithCancelCause(c.ctx)
	c.stop = stop
	defer stop(nil) // what a tool has left running is to stop
	c.out = &output{
		ctx:      ctx,
		mask:     c.f.o.Mask,
		paged:    c.r.Tool.Paged,
		page:     newPage(pageTokens, c.f.o.Counter.Count, c.f.o.Mask),
		pass:     newPass(c.limits, c.f.o.Counter, c.f.o.Mask, c.holdLimit()),
		progress: c.r.Progress,
	}
	c.out.pass.redact = c.f.o.Redact
	c.out.started = func() { c.out.pass.begin = c.record }
	if !c.r.Tool.Paged {
		c.out.started()
	}
	o := c.run()
	c.millis = float64(time.Since(c.began).Microseconds()) / 1000
	c.out.end()
	s := c.out.pass.close()
	if p := c.out.pass.defect; p != nil && o.err == nil { // else a write told the tool
		c.log("reading an output panicked", "tool", c.r.Tool.Name, "panic", c.logged(fmt.Sprint(p)))
		o = outcome{status: failure, err: errDefect, stopped: true}
	}
	if c.out.pass.decoder != nil {
		c.out.notes = append(c.out.notes, "decoded from "+string(c.out.pass.encoding)+"; it is kept as it was written")
	}
	defer c.out.pass.forget() // what was not committed
	if s.bytes == 0 {
		c.out.kept = false // there is nothing to keep
	}
	if o.status == success && c.out.counts["exit_code"] != 0 {
		o.status = failure // of the command, not of the call
	}
	if c.answer.Failed = o.err != nil; o.err != nil {
		_, n := c.f.o.Mask.Echo(o.err.Error(), c.r.Args)
		c.found += n
	}
	if o.status == asked {
		return Answer{}, o.err
	}
	if c.f.o.Policy.Window > 0 {
		var done func()
		spent, done = c.f.spent.turn(c.r.Who)
		defer done()
	}
	v := &view{call: c, seen: s, outcome: o, spent: spent}
	if o.status == cancelled {
		if s.bytes > 0 {
			v.abandon()
		}
		c.finish(v.receipt(), o)
		return Answer{}, c.ctx.Err()
	}
	switch {
	case s.bytes > 0 || !c.r.Tool.Paged || c.out.kept:
		v.show()
	default:
		v.showPage()
	}
	return c.finish(v.receipt(), o), nil
}

// holdLimit is how much of an output's beginning is held, in bytes: what might be shown whole. That is
// a page, or what costs no more than a receipt: no token is longer than 128 bytes.
func (c *call) holdLimit() int {
	limit := max(utf8.UTFMax*maxPageChars, 128*c.limits.ReceiptTokens, utf8.UTFMax*c.limits.LargeChars)
	if c.r.Tool.Uncut || c.f.o.Policy.Disabled {
		limit = max(limit, maxAnswer)
	}
	return limit
}

// record starts the recording of what the tool writes.
func (c *call) record() (*observations.Recording, error) {
	switch {
	case c.r.Keep == Never:
		return nil, errors.New("keeping was not asked for")
	case c.f.o.Store == nil && c.f.o.NoStore != nil:
		return nil, c.f.o.NoStore
	case c.f.o.Store == nil:
		return nil, errors.New("there is no store")
	}
	args, name := c.r.Args, c.r.Name
	if c.f.o.Redact {
		args = c.f.o.Mask.JSON(args)
		name, _ = c.f.o.Mask.String(name)
	}
	return c.f.o.Store.Record(observations.Made{
		Owner:  c.r.Who.Owner,
		Tool:   c.r.Tool.Name,
		Name:   name,
		Args:   args,
		Origin: c.out.origin,
	})
}

// finish counts the answer, traces the call, and hands the answer out.
func (c *call) finish(r Receipt, o outcome) Answer {
	for _, p := range c.parts() {
		c.answer.Blocks = append(c.answer.Blocks, Block{MIME: p.mime, Name: visibleLine(c.masked(p.name), false), Data: p.data})
	}
	r.ShownTokens = c.shown
	r.Masked = c.secrets()
	r.Millis = c.millis
	c.answer.Receipts = []Receipt{r}
	if c.f.o.Policy.Window > 0 && o.status != cancelled {
		c.f.spent.add(c.r.Who, int(c.shown))
	}
	c.trace(r, o)
	return c.answer
}

// parts are the images that are shown.
func (c *call) parts() []*part {
	var out []*part
	if c.out != nil {
		for _, p := range c.out.parts {
			if len(p.data) > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

func (c *call) trace(r Receipt, o outcome) {
	if c.f.o.Trace == nil {
		return
	}
	t := trace.Call{
		V: 1, At: c.began.UTC(), Session: c.r.Who.ID, Owner: c.r.Who.Owner,
		Tool: c.r.Tool.Name, CallHash: observations.CallHash(c.r.Tool.Name, c.r.Args),
		Status: r.Status, Verdict: string(r.Decision.Verdict),
		SeenBytes: r.Bytes, SeenTokens: r.Tokens, SeenMargin: r.TokensMargin, ShownTokens: r.ShownTokens,
		Observation: r.ObservationID, Kept: r.Kept, Millis: r.Millis,
	}
	if o.err != nil {
		t.Error = content.ClipBytes(visibleLine(c.logged(o.err.Error()), false), 200)
	}
	if err := c.f.o.Trace.Append(t); err != nil {
		c.log("trace: the call could not be written down", "error", err)
	}
}

var _ tools.Output = (*output)(nil)
