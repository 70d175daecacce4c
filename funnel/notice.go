package funnel

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// contextFull begins every notice. lastNotice is the last one of a turn whose emergency buffer is used up.
const (
	contextFull = "context full: "
	lastNotice  = contextFull + "until it is compacted, answers are empty errors"
)

// enforce replaces an answer that is larger than what the client's report leaves by a notice. The output is kept. An
// answer that costs no more than a notice is shown. Both count against the emergency buffer: what a turn shows beyond
// what was left is never more than that. Once it is used up, an answer has no text and is an error, so that nobody
// takes it for an empty output.
//
// It is the last step, because errors, notes and images are part of an answer too.
func (d *display) enforce() {
	c := d.call
	if d.decision.Source == "" || c.options.Policy.DryRun || c.options.Policy.Disabled {
		return
	}
	cost := d.most(int(c.reply.shownTokens)) + policy.ImageTokens*len(c.images())
	allowed := max(d.decision.Left, policy.Notice)
	if d.hidesErrors() {
		allowed = d.cost(text.ErrorPrefix + contextFull + d.where())
	}
	room := d.decision.Left + d.decision.Buffer
	last := d.cost(lastNotice)
	if cost <= min(allowed, room-last) || cost <= d.decision.Left {
		return
	}
	if c.captured != nil && c.captured.Bytes > 0 && c.observation == nil && c.output.source == "" &&
		c.keepErr == nil {
		d.store()
	}
	notice := d.notice(cost)
	d.complete, d.rejected = false, true
	c.reply.clear()
	switch {
	case d.cost(notice) <= room-last:
		c.reply.addText(notice)
	case last <= room:
		c.reply.addText(lastNotice)
	default:
		c.reply.answer.Failed = true
	}
}

// cost returns the upper bound of the tokens of a text.
func (d *display) cost(s string) int { return d.most(d.call.options.Counter.Count(s)) }

// most returns the upper bound of a number of tokens that was counted.
func (d *display) most(tokens int) int {
	return policy.AtMost(int64(tokens), d.call.options.Counter.Model().Error)
}

// notice returns the text that replaces an answer of that many tokens. The first notice of a session says what would
// fit, later ones are one short line.
func (d *display) notice(cost int) string {
	if d.hidesErrors() {
		return d.hiddenError()
	}
	where := d.where()
	if d.decision.Left >= policy.MinReceipt { // an answer that must not be cut, or one that others were faster than
		return fmt.Sprintf("not shown: %s do not fit into the %d left; %s",
			content.Plural(int64(cost), "token", "tokens"), d.decision.Left, where)
	}
	most, short := policy.Notice, contextFull+where
	switch {
	case d.outcome.err != nil && d.call.observation == nil:
		short = d.call.failureText(d.outcome, "")
	case d.outcome.err != nil:
		short = text.ErrorPrefix + short
	}
	if !d.noticed {
		most = policy.FirstNotice
		if d.outcome.err == nil {
			short = d.firstNotice(cost, where)
		}
	}
	return d.clipTo(most, short)
}

// hidesErrors reports whether an error is replaced by a constant line: once half of the emergency buffer is used up, so
// that more of them can be shown.
func (d *display) hidesErrors() bool {
	return d.outcome.err != nil && 2*d.decision.Buffer < cmp.Or(d.call.options.Policy.Emergency, policy.UnsetBuffer)
}

// hiddenError returns the line that is shown instead of an error. The trace has the error.
func (d *display) hiddenError() string {
	line := text.ErrorPrefix + contextFull + d.where()
	if !d.noticed {
		line += "; have the context compacted or cleared"
	}
	return d.clipTo(policy.Notice, line)
}

// where says where the output can be read.
func (d *display) where() string {
	c := d.call
	source := c.source()
	switch {
	case c.observation != nil:
		return "kept as " + observations.Prefix + string(c.observation.ID)
	case strings.HasPrefix(source, observations.Prefix):
		return "kept as " + source
	case source != "" || c.captured == nil || c.captured.Bytes == 0:
		return "not shown"
	}
	return "not kept: " + c.notKept()
}

// firstNotice says what is left, who said so, and what would fit.
func (d *display) firstNotice(cost int, where string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s left (reported by %s), this answer takes %d", contextFull,
		content.Plural(int64(d.decision.Left), "token", "tokens"), d.decision.Source, cost)
	if d.size.Lines > 0 {
		fmt.Fprintf(&b, "; total: %s, %s", content.Plural(d.size.Lines, "line", "lines"),
			content.Plural(d.size.Tokens, "token", "tokens"))
	}
	b.WriteString("; " + where + "\nnext: ")
	source := d.call.source()
	if obs := d.call.observation; obs != nil {
		source = observations.Prefix + string(obs.ID)
	}
	switch less := d.call.request.Tool.Less; {
	case d.decision.Left < policy.Notice:
		b.WriteString("have the context compacted or cleared")
	case less != "":
		b.WriteString(less)
	case source != "":
		fmt.Fprintf(&b, "slice {\"source\":%q,\"lines\":\"1-3\"}", source)
	default:
		b.WriteString("ask for less")
	}
	b.WriteString("; later notices are one line")
	return b.String()
}

// clipTo returns a text of at most that many tokens.
func (d *display) clipTo(tokens int, s string) string {
	for chars := len(s); chars > 0 && d.cost(s) > tokens; chars = chars * 3 / 4 {
		s = content.Clip(s, chars)
	}
	return s
}
