package funnel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// showPage answers with the rows of a paged tool, below a header if they are not complete.
func (d *display) showPage() {
	c, p := d.call, d.call.output.page
	rows := p.Rows()
	d.total = c.options.Counter.Total(rows)
	d.size = policy.Size{
		Chars:  int64(utf8.RuneCountInString(rows)),
		Bytes:  int64(len(rows)),
		Tokens: d.total.N,
		Margin: d.total.Margin,
	}
	if rows != "" {
		d.size.Lines = int64(strings.Count(strings.TrimSuffix(rows, "\n"), "\n")) + 1
	}
	d.kind = kinds.Sniff([]byte(rows), true, "")
	d.decision = c.options.Policy.Decide(d.size, d.spent)
	d.complete = p.Complete()

	current := tools.Call{Tool: c.request.Tool.Name, Args: c.request.Args}
	header, notes := p.Header(current, receipt.Notes(d.notes()), int(d.size.Tokens), int(d.size.Chars))
	blocks := d.pageBlocks(header, rows, notes)
	if d.outcome.err != nil {
		rest := ""
		switch {
		case d.outcome.status == timeout && !p.Empty():
			rest = "what was found until then follows"
		case d.outcome.status == timeout:
			rest = "nothing was found until then: ask for less"
		}
		c.reply.addText(c.failureText(d.outcome, rest))
	}
	for _, b := range blocks {
		c.reply.addText(b)
	}
}

// pageBlocks returns the header and the rows, or why they are not shown, with the notes in the first block.
func (d *display) pageBlocks(header, rows, notes string) (blocks []string) {
	c, p := d.call, d.call.output.page
	switch limited := !c.options.Policy.DryRun; {
	case limited && d.decision.Verdict == policy.NeedsSummary && d.most(int(d.size.Tokens)) > d.decision.Left:
		d.complete = false // concurrent calls were faster
		blocks = []string{fmt.Sprintf("not shown: %s, and %d left by now; repeat the call: its page will fit",
			content.Plural(d.size.Tokens, "token", "tokens"), d.decision.Left)}
	case header != "" && rows != "":
		blocks = []string{header, rows}
	case header != "":
		blocks = []string{header}
	case rows != "" || !p.Empty():
		blocks = []string{rows}
	case d.outcome.err == nil && notes == "" && len(c.images()) == 0:
		blocks = []string{"no rows"}
	}
	switch {
	case notes == "":
	case len(blocks) == 0:
		blocks = []string{notes}
	default:
		blocks[0] = strings.TrimSuffix(blocks[0], "\n") + "\n" + notes
	}
	return blocks
}

// sizeReceipt returns what the receipt of any answer has: its size, and what was decided.
func (d *display) sizeReceipt(kind content.Kind) Receipt {
	return Receipt{
		Complete: d.complete, Kind: string(kind), Lines: d.size.Lines, Chars: d.size.Chars, Bytes: d.size.Bytes,
		Tokens: d.size.Tokens, TokensMargin: d.total.Margin, TokensExact: d.total.Margin == 0,
		Status: d.outcome.status, Decision: d.decision,
	}
}

// receipt returns the fields of the receipt that are sent with the answer.
func (d *display) receipt() Receipt {
	c, kind := d.call, d.kind
	if kind == "" {
		kind = c.captured.Kind()
	}
	r := d.sizeReceipt(kind)
	r.Complete = d.complete && d.outcome.err == nil
	r.Truncated = d.outcome.stopped && c.captured.Bytes > 0
	r.Metadata = c.output.counts
	r.Matches, r.Files = receipt.Facts{Captured: c.captured, Counts: c.output.counts}.Matches()
	if cost, ok := c.output.counts["cost"]; ok {
		r.Cost = &cost
	}
	if rec, _ := c.captured.Recording(); rec != nil && c.observation == nil && rec.Dropped() > 0 {
		r.Truncated = true
	}
	if d.lost {
		r.NotKept = text.VisibleLine(c.reply.maskText(c.notKept()), false)
	}
	if obs := c.observation; obs != nil {
		r.Kept = true
		r.Truncated = r.Truncated || obs.Dropped > 0
		r.ObservationID = string(obs.ID)
		r.URI = observations.URIPrefix + string(obs.ID)
		r.SHA256 = obs.SHA256
		r.Redacted = c.redacted()
		r.SavedTo, r.Link = c.places()
	}
	return r
}
