package funnel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// call is the state of one tool call.
type call struct {
	options  *Options
	accounts *sessionAccounts
	ctx      context.Context
	stop     context.CancelCauseFunc // cancels the tool's context, which is derived from ctx
	request  Request
	limits   Limits
	began    time.Time
	millis   float64 // how long the tool ran

	output   *output           // nil: the tool was not run
	captured *capture.Captured // nil: the output is not closed yet
	reply    reply
	notice   bool           // a notice is shown instead of the output
	turn     string         // of the client, as it reported it
	files    []trace.Opened // of which the answer shows lines

	observation *observations.Observation // the stored output; nil: none
	keepErr     error                     // why storing it failed
	link        string                    // see [call.places]; "" until it is made
}

// maskedSecrets returns how many secrets were masked in the output, its rows and the text around them.
func (c *call) maskedSecrets() int {
	n := c.reply.masked
	if c.output != nil {
		n += c.captured.Masked + c.output.page.Masked() + c.output.masked
	}
	return n
}

// source returns the source that the answer is about or was read from, "" for none.
func (c *call) source() string {
	if c.output == nil {
		return c.request.About
	}
	return cmp.Or(c.request.About, c.output.source)
}

// images returns the images that are shown.
func (c *call) images() []*image {
	if c.output == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.output.images), func(i *image) bool { return len(i.data) == 0 })
}

// maskForLog masks secrets in a failure, which may repeat the arguments. It does not count them, because it may run in
// the tool's goroutine.
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
