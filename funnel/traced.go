package funnel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Client is the program that called, as it named itself.
type Client struct{ Name, Version string }

// trace writes the call down, with the blocks that its caller is shown.
func (c *call) trace(r Receipt, o outcome, blocks []Block) {
	if c.options.Trace == nil || c.request.Via == trace.ViaView {
		return
	}
	d := r.Decision
	t := trace.Call{
		At: c.began.UTC(), Session: c.request.Who.ID, Owner: c.request.Who.Owner,
		Tool: c.request.Tool.Name, Server: c.request.Tool.Server, CallHash: observations.CallHash(c.request.Tool.Name, c.request.Args),
		Status: r.Status, Verdict: string(d.Verdict),
		SeenBytes: r.Bytes, SeenTokens: r.Tokens, SeenMargin: r.TokensMargin, ShownTokens: r.ShownTokens,
		Observation: r.ObservationID, Kept: r.Kept, Millis: r.Millis,
		Via: c.request.Via, Source: c.maskForLog(sourceOf(c.request.Args)),
		Reason: d.Reason, Deficit: d.Deficit, Limited: d.Limited, Spent: d.Spent, Left: d.Left, DryRun: d.DryRun,
		Notice: c.notice, Window: d.Window, WindowFrom: d.WindowFrom, UsageFrom: d.Source, Turn: c.turn,
		Client: c.maskForLog(c.request.Client.Name), ClientVersion: c.maskForLog(c.request.Client.Version),
		Model: c.options.Model, Opened: c.files,
	}
	if c.output != nil {
		t.Name = c.maskForLog(c.output.name)
		t.Covers = c.output.page.Covers()
		for _, from := range c.output.origin {
			t.Origin = append(t.Origin, c.maskForLog(from))
		}
	}
	if d.Source != "" && !d.DryRun && c.request.Via != trace.ViaPrompt &&
		c.request.Via != trace.ViaList && o.status != cancelled {
		most := policy.AtMost(r.ShownTokens, c.options.Counter.Model().Error)
		t.Violation = max(most-d.Left-policy.FirstNotice, 0)
	}
	if o.err != nil {
		t.Error = content.ClipBytes(text.VisibleLine(c.maskForLog(o.err.Error()), false), 200)
	}
	said := strings.ReplaceAll(shownText(blocks), cmp.Or(c.link, "\x00"), "[masked: link]") // it needs no token
	if err := c.options.Trace.Append(t, &trace.Shown{Args: c.options.Mask.JSON(c.request.Args), Text: said}); err != nil {
		c.logError("trace: the call could not be written down", "error", err)
	}
}

// shownText returns the texts of blocks, which are masked, and a line for each image.
func shownText(blocks []Block) string {
	texts := make([]string, len(blocks))
	for i, b := range blocks {
		if texts[i] = b.Text; b.MIME != "" {
			size := strconv.Itoa(len(b.Data))
			for at := len(size) - 3; at > 0; at -= 3 {
				size = size[:at] + "," + size[at:]
			}
			texts[i] = fmt.Sprintf("[%s, %s bytes]", b.MIME, size)
		}
	}
	return strings.Join(texts, "\n\n")
}

// sourceOf returns the file or observation that a call names by its argument source or path; "" if there is none.
func sourceOf(args json.RawMessage) string {
	var named struct{ Source, Path json.RawMessage }
	if json.Unmarshal(args, &named) != nil {
		return ""
	}
	raw := named.Source
	if raw == nil {
		raw = named.Path
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var several []string
	if json.Unmarshal(raw, &several) == nil {
		return strings.Join(several, ", ")
	}
	return ""
}
