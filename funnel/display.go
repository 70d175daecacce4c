package funnel

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/receipt"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// display decides how much of an output, or of a page, is shown.
type display struct {
	call    *call
	outcome outcome
	spent   policy.Spent
	noticed bool // the session has had a notice before

	kind     content.Kind // of the page; "": that of the output
	size     policy.Size  // of the output, or of the page
	total    tokens.Total // its tokens
	decision Decision
	complete bool          // all of it is shown
	whole    receipt.Whole // how it is shown, if it is shown whole
	news     bool          // only what an earlier answer has not shown
	lost     bool          // the answer has a receipt of an output that was not stored
	rejected bool          // a notice is shown instead
}

// measure sets size and decision from the output.
func (d *display) measure() {
	c := d.call.captured
	d.total = c.Tokens
	d.size = policy.Size{Lines: c.Lines, Chars: c.Chars, Bytes: c.Bytes, Tokens: c.Tokens.N, Margin: c.Tokens.Margin}
	d.decision = d.call.options.Policy.Decide(d.size, d.spent)
}

// form is how an output is shown.
type form int

const (
	asReceipt   form = iota // its receipt
	asWhole                 // all of it
	asKeptWhole             // all of it, below a line with the name of the observation
	asBeginning             // as much as one answer takes, below the totals
	asNews                  // what an earlier answer has not shown, or its receipt
)

// plan is what is decided before anything is stored.
type plan struct {
	form    form
	verdict policy.Verdict
	whole   receipt.Whole
	fits    bool // the whole may be shown
	draft   *receipt.Draft
	receipt string // of the draft; "": nothing is stored
	tokens  int    // of the receipt
}

// showOutput answers with the output: whole, or by a receipt.
func (d *display) showOutput() {
	d.measure()
	p := d.decide()
	if p.receipt != "" {
		d.commit(p.receipt)
	}
	blocks := d.write(p)
	c := d.call
	if d.outcome.err != nil {
		c.reply.addText(c.failureText(d.outcome, d.afterError()))
		if c.captured.Bytes == 0 {
			blocks = nil
			if n := receipt.Notes(d.notes()); n != "" {
				blocks = []string{n}
			}
		}
	}
	for _, b := range blocks {
		c.reply.addText(b)
	}
	if !c.output.page.Empty() { // rows shown before the tool asked for its output to be kept
		c.reply.addText(c.output.page.Rows())
	}
}

// decide plans how the output is shown. It starts the recording of what will be stored.
func (d *display) decide() plan {
	c := d.call
	p := plan{verdict: d.decision.Verdict}
	if c.options.Policy.DryRun || p.verdict == policy.Reject { // enforce replaces what does not fit
		p.verdict = policy.OK
	}
	uncut := c.options.Policy.Disabled || c.request.Uncut
	if p.whole, p.fits = receipt.Render(d.wholeFacts(), uncut); p.fits {
		if p.whole.Collapsed { // what is not shown must be stored
			c.output.kept = true
			c.output.notes = append(c.output.notes, "colours and overwritten lines are left out here")
		}
		p.whole = p.whole.WithNotes(d.wholeFacts())
		c.reply.setCount(p.whole.Text, p.whole.Tokens)
	}
	kept, asIs := c.output.kept, uncut && !c.output.kept
	switch {
	case c.captured.News != nil:
		p.form = asNews
	case p.fits && !kept && (asIs || p.verdict == policy.OK && !d.large(p.whole)):
		p.form = asWhole
	case asIs && !c.request.Uncut:
		p.form = asBeginning
	case p.fits && kept && c.request.Keep == Auto && c.captured.Kind() != content.Binary:
		p.form = asKeptWhole
	}
	if p.form == asWhole && c.request.Keep != Always {
		return p
	}
	c.captured.Record()
	d.planReceipt(&p)
	if p.form == asKeptWhole && !d.keptWholePays(p) {
		p.form, p.fits = asReceipt, false
		d.planReceipt(&p)
	}
	if p.fits = p.fits && !kept; p.form == asReceipt && p.fits && !d.pays(p) {
		p.form = asWhole
		if p.receipt = ""; c.request.Keep == Always {
			d.planReceipt(&p)
		}
	}
	return p
}

// planReceipt plans the receipt that is stored: of an output that is shown otherwise, as a later reader needs it.
func (d *display) planReceipt(p *plan) {
	limit := d.call.limits.ReceiptTokens
	p.draft = d.draft()
	switch p.form {
	case asReceipt:
		if limit = d.ceiling(p.verdict); d.call.output.same {
			p.draft.OnlyFirstLines()
		}
	case asKeptWhole:
		limit = d.ceiling(p.verdict)
	case asBeginning:
		size, _ := receipt.Beginning(d.call.captured)
		p.draft.OnlyTotals(size)
	}
	p.receipt, p.tokens = p.draft.Fit(limit)
}

// write returns the blocks of the answer, once the output is stored or storing it has failed.
func (d *display) write(p plan) []string {
	switch p.form {
	case asWhole:
		return d.writeWhole(p)
	case asKeptWhole:
		return d.writeKeptWhole(p)
	case asNews:
		return d.writeNews(p)
	case asBeginning:
		if d.call.keepErr != nil { // the receipt's text would claim that it is kept
			d.planReceipt(&p)
		}
		_, shown := receipt.Beginning(d.call.captured)
		return []string{p.receipt, shown}
	}
	return d.writeReceipt(p)
}

// store stores the output and its receipt, of which nothing is shown.
func (d *display) store() {
	d.call.captured.Record()
	text, _ := d.draft().Fit(d.call.limits.ReceiptTokens)
	d.commit(text)
}

// facts returns what a receipt may say of the output. It changes when the output is stored or storing it fails.
func (d *display) facts() receipt.Facts {
	c, tool := d.call, d.call.request.Tool
	f := receipt.Facts{
		Captured: c.captured,
		Count:    c.options.Counter.Count,
		Source:   c.output.source,
		NotKept:  c.notKept(),
		Notes:    d.notes(),
		Asked:    c.output.kept || c.request.Keep == Always,
		Images:   len(c.images()),
		Counts:   c.output.counts,
		OwnTool:  !tool.Paged && c.output.source == "" && (tool.Toolset == tools.Core || tool.Toolset == ""),
		Terminal: tool.Terminal || c.captured.Streams.Mixed(), Findings: c.output.found,
		ReadOnly: tool.Effect == tools.ReadOnly,
		Offered:  c.options.Offered,
		Hint:     c.options.Hint,
		Command:  c.request.Command,
		Quoted:   c.output.quoted,
		News:     d.news, Replaces: c.output.replaces,
	}
	if rec, _ := c.captured.Recording(); rec != nil {
		f.Kept = receipt.Kept{
			Name: observations.Prefix + string(rec.ID()),
			Size: rec.Size(), Seen: rec.Size() + rec.Dropped(),
			Part: rec.Dropped() > 0 || d.outcome.stopped,
		}
	}
	return f
}

// wholeFacts returns the facts for showing the whole output. Its notes say what is damaged; a receipt has a line for
// that.
func (d *display) wholeFacts() receipt.Facts {
	f := d.facts()
	if c := d.call.captured; c.Kind() == content.Table || c.Kind() == content.Diff {
		damage := strings.Join(c.Summary().Damage, "; ")
		f.Notes = strings.Join(slices.DeleteFunc([]string{f.Notes, damage}, func(n string) bool { return n == "" }), "; ")
	}
	return f
}

// draft returns the draft of a receipt from the facts as they are now.
func (d *display) draft() *receipt.Draft {
	f := d.facts()
	if since := d.call.output.since; since != "" {
		f.Notes = strings.TrimPrefix(f.Notes+"; "+since, "; ")
	}
	d.lost = f.NotKept != ""
	return receipt.NewDraft(f)
}

func (d *display) commit(receipt string) { d.call.commit(d.outcome.status, receipt) }

// large reports whether an output is too large to be shown unasked, as it would be shown. A source was asked for by
// name, so it may take a page.
func (d *display) large(whole receipt.Whole) bool {
	c, l := d.call.captured, d.call.limits
	if d.call.output.paged || d.call.output.source != "" {
		return c.Chars > policy.MaxPageChars || utf8.RuneCountInString(whole.Text) > policy.MaxPageChars ||
			whole.Tokens > l.PageTokens
	}
	shown := strings.TrimSuffix(strings.TrimSuffix(whole.Text, receipt.Notes(d.wholeFacts().Notes)), "\n")
	lines, chars, tokens := d.call.mostWhole()
	return strings.Count(shown, "\n")+1 > lines || utf8.RuneCountInString(shown) > chars || whole.Tokens > tokens
}

// mostWhole returns the largest output that is shown whole: by the limits of the operator and the call where they set
// any, else by those of the tool.
func (c *call) mostWhole() (lines, chars, tokens int) {
	own, l := c.request.Tool.Whole, c.limits
	lines, chars, tokens = l.LargeLines, l.LargeChars, math.MaxInt
	perTool := c.options.Tools[c.request.Tool.Name].Limits
	isDefault := func(of func(Limits) int) bool {
		return of(c.request.Limits) == 0 && of(perTool) == 0 && of(c.options.Limits) == of(policy.Defaults)
	}
	if own.Lines > 0 && isDefault(func(l Limits) int { return l.LargeLines }) {
		lines = own.Lines
	}
	if own.Tokens > 0 && isDefault(func(l Limits) int { return l.LargeChars }) {
		chars, tokens = policy.MaxPageChars, own.Tokens
	}
	return lines, chars, tokens
}

func (d *display) writeWhole(p plan) []string {
	d.complete, d.whole = true, p.whole
	switch {
	case p.whole.Text == "": // there are only images
		return nil
	case p.whole.Written && p.whole.Output != "" && p.whole.Notes != "" && d.call.output.result != nil:
		return []string{p.whole.Output, p.whole.Notes} // the text of an upstream server stays what it is
	}
	return []string{p.whole.Text}
}

// ceiling returns how many tokens a receipt may take.
func (d *display) ceiling(verdict policy.Verdict) int {
	if verdict != policy.OK {
		room := int(float64(d.decision.Left) / (1 + d.call.options.Counter.Model().Error))
		return min(d.call.limits.ReceiptTokens, room)
	}
	return d.call.limits.ReceiptTokens
}

// pays reports whether the receipt is shown rather than the whole output: if it costs less, and saves at least the share
// that the operator set. If the session's budget asks for a receipt, any saving will do.
func (d *display) pays(p plan) bool {
	n, whole := p.tokens, p.whole
	if n >= whole.Tokens || p.verdict != policy.OK || utf8.RuneCountInString(whole.Text) > policy.MaxPageChars {
		return n < whole.Tokens
	}
	return 100*n <= (100-d.call.limits.MinSaving)*whole.Tokens
}

// writeReceipt shows the receipt. If the output could not be stored, the whole is shown where it costs no more.
func (d *display) writeReceipt(p plan) []string {
	c := d.call
	if c.keepErr != nil { // the receipt's text would claim that it is kept
		p.draft = d.draft()
		if p.receipt, p.tokens = p.draft.Fit(d.ceiling(p.verdict)); p.fits && !d.pays(p) {
			return d.writeWhole(p)
		}
		return []string{p.receipt}
	}
	if file, link := c.places(); file != "" || link != "" {
		// The file has its name only now. The stored receipt names neither, because other clients may read it.
		p.draft.SetSaved(file)
		p.draft.SetLink(link)
		ceiling := d.ceiling(p.verdict)
		if p.fits {
			ceiling = min(ceiling, p.whole.Tokens-1)
		}
		p.receipt, _ = p.draft.Fit(ceiling)
	}
	return []string{p.receipt}
}

// keptWholePays reports whether an output that the tool asked to store is shown whole: if that costs no more than its
// receipt.
func (d *display) keptWholePays(p plan) bool {
	shown := strings.TrimSuffix(p.whole.Text, receipt.Notes(d.notes()))
	return p.whole.Tokens+d.call.options.Counter.Count(d.facts().AboveWhole()) <= p.tokens &&
		utf8.RuneCountInString(shown) <= policy.MaxPageChars
}

func (d *display) writeKeptWhole(p plan) []string {
	d.complete = true
	first, notes := d.facts().AboveWhole(), receipt.Notes(d.notes())
	if notes != "" {
		first += "\n" + notes
	}
	return []string{first, strings.TrimSuffix(p.whole.Text, notes)}
}

// writeNews shows what an earlier answer has not shown: all of it, or its receipt.
func (d *display) writeNews(p plan) []string {
	d.news = true
	facts := d.facts()
	shown, can := receipt.ShowNews(facts)
	text, n := d.draft().Fit(d.ceiling(p.verdict))
	if !can || d.large(receipt.Whole{Text: shown}) && d.call.options.Counter.Count(shown) >= n {
		return []string{text}
	}
	first := facts.AboveNews()
	if notes := receipt.Notes(d.notes()); notes != "" {
		first += "\n" + notes
	}
	if shown == "" {
		return []string{first}
	}
	return []string{first, shown}
}

// notes returns one line with the number of masked secrets and the tool's notes.
func (d *display) notes() string {
	notes := d.call.output.notes
	if n := d.call.maskedSecrets(); n > 0 {
		notes = append([]string{receipt.MaskedNote(n)}, notes...)
	}
	return strings.Join(notes, "; ")
}

// afterError returns the text behind an error: what happened to the output before it.
func (d *display) afterError() string {
	c := d.call
	switch {
	case c.captured.Bytes == 0 && d.outcome.status == timeout:
		return "nothing was written until then: ask for less"
	case c.captured.Bytes == 0:
		return ""
	case c.observation != nil:
		return fmt.Sprintf("what was written until then is kept as %s%s", observations.Prefix, c.observation.ID)
	case d.complete:
		return "what was written until then follows"
	default:
		return "the receipt of what was written until then follows"
	}
}
