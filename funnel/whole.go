package funnel

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// addRest adds to the answer what [Request.Whole] did not get: notes, and the error.
func (d *display) addRest() {
	c := d.call
	d.measure()
	d.decision, d.complete = c.options.Policy.Decide(policy.Size{}, d.spent), true
	note := func(text string) { c.output.notes = append(c.output.notes, text) }
	if c.output.kept {
		if d.store(); c.observation != nil {
			note("kept as " + observations.Prefix + string(c.observation.ID))
		}
	}
	if r := c.output.result; len(c.images()) > 0 || r != nil && r.Second != "" {
		note("images, sounds, or structured content beside the text, are left out")
	}
	if notes := receipt.Notes(d.notes()); notes != "" {
		c.reply.addText(notes)
	}
	if d.outcome.err != nil {
		c.reply.addText(c.failureText(d.outcome, ""))
	}
}

// NewCaller returns the [Request.Caller] of a call: list returns all tools, run is [Funnel.Call] for each of their calls.
func NewCaller(
	of Request, list func(context.Context) ([]tools.Tool, error), run func(context.Context, Request) (Answer, error),
) *tools.Caller {
	call := func(ctx context.Context, t tools.Tool, args json.RawMessage, shown bool, w io.Writer) (string, bool, error) {
		r := Request{Tool: t, Args: args, Who: of.Who, Sources: of.Sources, Client: of.Client, Via: trace.ViaCommand}
		if !shown {
			r.Whole = w
		}
		answer, err := run(ctx, r)
		says := strings.TrimSpace(shownText(answer.Blocks))
		if shown && err == nil {
			_, err = io.WriteString(w, says+"\n")
			says = ""
		}
		return says, answer.Failed, err
	}
	return &tools.Caller{Tools: list, Call: call}
}
