package funnel

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Show answers with a text of this server's own, such as a stored receipt or a prompt: no tool runs. The text is
// counted and traced as an answer is, and is replaced by a notice if it does not fit into what the client reported.
func (f *Funnel) Show(r Request, text string) Answer {
	f.takeUsage(&r)
	o := &f.options
	c := &call{
		options: o, accounts: f.accounts, request: r, limits: o.Limits, began: time.Now(),
		reply: reply{mask: o.Mask, counter: o.Counter},
	}
	account, done := f.accounts.begin(r.Who)
	defer done()
	d := &display{
		call: c, outcome: outcome{status: success}, spent: SpentOf(account), noticed: account.Notices > 0,
		kind: content.Text, complete: true, total: o.Counter.Total(text),
	}
	d.size = policy.Size{
		Lines: int64(strings.Count(text, "\n") + 1), Chars: int64(utf8.RuneCountInString(text)), Bytes: int64(len(text)),
		Tokens: d.total.N, Margin: d.total.Margin,
	}
	d.decision = o.Policy.Decide(d.size, d.spent)
	c.reply.addText(text)
	if !r.Uncut {
		d.enforce()
		c.notice = d.rejected
	}
	return c.finish(d, d.sizeReceipt(d.kind), d.outcome)
}
