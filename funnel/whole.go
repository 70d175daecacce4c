package funnel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// addRest adds to the answer what [Request.Whole] did not get: notes, and the error.
func (d *display) addRest() {
	c := d.call
	d.measure()
	d.decision, d.complete = c.options.Policy.Decide(policy.Size{}, d.spent), true
	note := func(format string, args ...any) {
		c.output.notes = append(c.output.notes, fmt.Sprintf(format, args...))
	}
	if c.output.kept {
		if d.store(); c.observation != nil {
			note("kept as %s%s", observations.Prefix, c.observation.ID)
		}
	}
	if n := len(c.images()); n > 0 {
		note("%s left out", content.Plural(int64(n), "image or sound is", "images or sounds are"))
	}
	if r := c.output.result; r != nil && r.Second != "" {
		note("the structured content beside the text is left out")
	}
	if notes := receipt.Notes(d.notes()); notes != "" {
		c.reply.addText(notes)
	}
	if d.outcome.err != nil {
		c.reply.addText(c.failureText(d.outcome, ""))
	}
}

// Calls is the [tools.Caller] of a call, for [Request.Caller].
type Calls struct {
	List func(context.Context) ([]tools.Tool, error)    // of all tools
	Run  func(context.Context, Request) (Answer, error) // as [Funnel.Call]
	Of   Request                                        // the call that the others are parts of
}

// Tools implements [tools.Caller].
func (c Calls) Tools(ctx context.Context) ([]tools.Tool, error) { return c.List(ctx) }

// Call implements [tools.Caller].
func (c Calls) Call(
	ctx context.Context, t tools.Tool, args json.RawMessage, shown bool, w io.Writer,
) (tools.Called, error) {
	r := Request{
		Tool: t, Args: args, Who: c.Of.Who, Sources: c.Of.Sources, Client: c.Of.Client, Via: trace.ViaCommand,
	}
	if !shown {
		r.Whole = w
	}
	answer, err := c.Run(ctx, r)
	if err != nil {
		return tools.Called{}, err
	}
	said := strings.TrimSpace(shownText(answer.Blocks))
	if shown {
		_, err = io.WriteString(w, said+"\n")
		said = ""
	}
	return tools.Called{Notes: said, Failed: answer.Failed}, err
}
