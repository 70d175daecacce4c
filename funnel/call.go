package funnel

import (
	"context"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// call is the state of one tool call.
type call struct {
	options *Options
	ledger  *ledger
	ctx     context.Context
	stop    context.CancelCauseFunc // of the tool's context, below ctx
	request Request
	limits  Limits
	began   time.Time
	millis  float64 // how long the tool ran

	output   *output           // nil: the tool was not run
	captured *capture.Captured // nil: the output is not closed yet
	reply    reply

	observation *observations.Observation // the stored output; nil: none
	keepErr     error                     // why storing it failed
}

func newCall(ctx context.Context, o *Options, l *ledger, r Request, limits Limits) *call {
	return &call{
		options: o, ledger: l, ctx: ctx, request: r, limits: limits, began: time.Now(),
		reply: reply{mask: o.Mask, counter: o.Counter},
	}
}

// maskedSecrets returns how many secrets were masked in the output, its rows and the text around them.
func (c *call) maskedSecrets() int {
	n := c.reply.masked
	if c.output != nil {
		n += c.captured.Masked + c.output.page.Masked() + c.output.masked
	}
	return n
}

// images returns the images that are shown.
func (c *call) images() []*image {
	var shown []*image
	if c.output != nil {
		for _, i := range c.output.images {
			if len(i.data) > 0 {
				shown = append(shown, i)
			}
		}
	}
	return shown
}

// maskForLog masks secrets in a failure, which may repeat the arguments. It counts none: it may run in the tool's
// goroutine.
func (c *call) maskForLog(s string) string {
	s, _ = c.options.Mask.Echo(s, c.request.Args)
	return s
}

func (c *call) logError(msg string, args ...any) {
	if c.options.Log != nil {
		c.options.Log.Error(msg, args...)
	}
}

var _ tools.Output = (*output)(nil)
