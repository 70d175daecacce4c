// Package policy decides how an output is shown, from its size, the operator's limits and what a context holds.
package policy

import (
	"cmp"
	"fmt"
	"math"
)

// Policy is a model's context window and what of it may be used, in tokens. The zero value knows no window and rejects
// nothing.
type Policy struct {
	Window    int  // the context window, if the client does not report it; 0: unknown
	Response  int  // reserved for the model's answer, if the client does not report it
	Emergency int  // for notices only
	Prompt    int  // the most that the prompt may take; 0: no limit of its own
	DryRun    bool // decides and reports, but shows as if the verdict were OK
	Disabled  bool // shows every output whole, up to 1 MB an answer

	Model string // name of the model, for usage that comes without one: its window may be known
}

// Spent is what the context of a session holds.
type Spent struct {
	Tokens   int    // of the context: those reported and those shown since; else those shown by this server
	Shown    int    // of these, those that this server has shown since the report
	Peak     int    // the largest prompt that was reported of the model
	Source   string // who reported them; "": nobody, they are only what this server has shown
	Window   int    // the context window, as reported; 0: it was not
	Response int    // reserved for the model's answer, as reported; 0: it was not
	Model    string // as reported; "": it was not
}

// summaryShare is the share of the usable part above which a summary is due.
const summaryShare = 0.8

// maxTokens bounds every setting and report: no model's window is near it.
const maxTokens = 1_000_000_000

// Usable returns how many tokens the prompt may take: the window without its reserves, and no more than the prompt
// budget. from says where the window comes from: "reported", "setting" or "table". ok is false if nothing limits it.
func (p Policy) Usable(s Spent) (usable, window int, from string, ok bool) {
	window, from = s.Window, "reported"
	if window <= 0 {
		window, from = p.Window, "setting"
	}
	if window <= 0 && s.Source != "" {
		window, from = p.tableWindow(s), "table"
	}
	if window <= 0 {
		return p.Prompt, 0, "", p.Prompt > 0
	}
	usable = max(window-cmp.Or(s.Response, p.Response)-p.Emergency, 0)
	if p.Prompt > 0 {
		usable = min(usable, p.Prompt)
	}
	return usable, window, from, true
}

// Decide returns the verdict on an output for a context that holds spent. It is a pure function. What is left is the
// usable part without spent; an estimated size counts with its margin.
//
// The first of these that is true decides:
//
//  1. Disabled: ok.
//  2. Nothing limits the prompt: ok.
//  3. Neither the output nor the smallest receipt (160 tokens) fits into what is left, and the client reported its
//     usage: reject. Without a report this server cannot know that: its client may have begun a new context. Then at
//     least the smallest receipt counts as left.
//  4. The output does not fit into what is left: needs_summary.
//  5. The output would bring spent over 80 % of the usable part: needs_summary.
//  6. Otherwise: ok.
//
// DryRun changes nothing here: the funnel then shows the output as if the verdict were ok.
// The deficit is the tokens over what is left (3, 4) or over the share (5).
func (p Policy) Decide(s Size, spent Spent) Decision {
	d := Decision{Verdict: OK, DryRun: p.DryRun}
	if p.Disabled {
		d.Reason = "the funnel is switched off"
		return d
	}
	usable, window, from, ok := p.Usable(spent)
	if !ok {
		d.Reason = "no context window is known"
		return d
	}
	d.Window, d.WindowFrom, d.Source, d.Limited = window, from, spent.Source, true
	d.Spent = max(spent.Tokens, 0)
	d.Left = max(usable-d.Spent, 0)
	over := spent.Shown - max(usable-(spent.Tokens-spent.Shown), 0) // of what was shown since the report
	d.Buffer = max(cmp.Or(p.Emergency, UnsetBuffer)-max(over, 0), 0)
	if spent.Source == "" {
		d.Left = max(d.Left, MinReceipt)
	}
	mark := int(math.Floor(summaryShare * float64(usable)))
	tokens := AtMost(s.Tokens, s.Margin)
	switch {
	case tokens > d.Left && d.Left < MinReceipt:
		d.Verdict, d.Deficit = Reject, tokens-d.Left
		d.Reason = fmt.Sprintf("%d tokens, and only %d left", tokens, d.Left)
	case tokens > d.Left:
		d.Verdict, d.Deficit = NeedsSummary, tokens-d.Left
		d.Reason = fmt.Sprintf("%d tokens do not fit into the %d left", tokens, d.Left)
	case tokens > 0 && d.Spent+tokens > mark:
		d.Verdict, d.Deficit = NeedsSummary, d.Spent+tokens-mark
		d.Reason = fmt.Sprintf("%d of %d usable tokens would be spent, over %d", d.Spent+tokens, usable, mark)
	default:
		d.Reason = fmt.Sprintf("%d tokens fit into the %d left", tokens, d.Left)
	}
	return d
}

// Validate returns an error for a policy that is out of range, or under which nothing could ever be shown.
func (p Policy) Validate() error {
	for _, of := range []struct {
		what   string
		tokens int
	}{
		{"context window", p.Window}, {"response reserve", p.Response}, {"emergency buffer", p.Emergency},
		{"prompt budget", p.Prompt},
	} {
		if of.tokens < 0 || of.tokens > maxTokens {
			return fmt.Errorf("policy: the %s must be from 0 to %d tokens, not %d", of.what, maxTokens, of.tokens)
		}
	}
	switch {
	case p.Window > 0 && p.Window-p.Response-p.Emergency < MinReceipt:
		return fmt.Errorf("policy: of a window of %d tokens less than %d are left after the reserves (%d + %d)",
			p.Window, MinReceipt, p.Response, p.Emergency)
	case p.Prompt > 0 && p.Prompt < MinReceipt:
		return fmt.Errorf(
			"policy: a prompt budget of %d tokens is below %d, the smallest receipt",
			p.Prompt,
			MinReceipt,
		)
	}
	return nil
}
