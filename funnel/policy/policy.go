// Package policy decides how an output is shown, from its size, the operator's limits and the model's context window.
//
// It sees no text, shows nothing and does not track what was spent.
package policy

import (
	"errors"
	"fmt"
	"math"
)

// Policy is a model's context window and its reserves, in tokens. The zero value knows no window and rejects nothing.
type Policy struct {
	Window    int  // the context window; 0: unknown
	Response  int  // reserved for the model's answer
	Prompt    int  // reserved for the prompt
	Emergency int  // never used
	DryRun    bool // decides and reports, but shows as if the verdict were OK
	Disabled  bool // shows every output whole, up to 1 MB an answer
}

// summaryShare is the share of the usable window above which a summary is due.
const summaryShare = 0.8

// Decide returns the verdict on an output when spent tokens of the window are used. It is a pure function. The usable
// part is the window without its three reserves; what is left is the usable part without spent.
//
// The first of these that is true decides:
//
//  1. Disabled: ok.
//  2. The window is unknown: ok.
//  3. Neither the output nor the smallest receipt (160 tokens) fits into what is left: reject.
//  4. The output does not fit into what is left: needs_summary.
//  5. The output would bring spent over 80 % of the usable part: needs_summary.
//  6. Otherwise: ok.
//
// DryRun changes nothing here: the funnel then shows the output as if the verdict were ok.
// The deficit is the tokens over what is left (3, 4) or over the share (5).
func (p Policy) Decide(s Size, spent int) Decision {
	switch {
	case p.Disabled:
		return Decision{Verdict: OK, Reason: "the funnel is switched off"}
	case p.Window <= 0:
		return Decision{Verdict: OK, Reason: "no context window is known"}
	}
	usable := max(p.Window-p.Response-p.Prompt-p.Emergency, 0)
	spent = max(spent, 0)
	left := max(usable-spent, 0)
	mark := int(math.Floor(summaryShare * float64(usable)))
	tokens := int(min(max(s.Tokens, 0), math.MaxInt32))
	d := Decision{Left: left}
	switch {
	case tokens > left && left < MinReceipt:
		d.Verdict, d.Deficit = Reject, tokens-left
		d.Reason = fmt.Sprintf("%d tokens, and only %d left", tokens, left)
	case tokens > left:
		d.Verdict, d.Deficit = NeedsSummary, tokens-left
		d.Reason = fmt.Sprintf("%d tokens do not fit into the %d left", tokens, left)
	case spent+tokens > mark:
		d.Verdict, d.Deficit = NeedsSummary, spent+tokens-mark
		d.Reason = fmt.Sprintf("%d of %d usable tokens would be spent, over %d", spent+tokens, usable, mark)
	default:
		d.Verdict = OK
		d.Reason = fmt.Sprintf("%d tokens fit into the %d left", tokens, left)
	}
	return d
}

// Validate returns an error for a policy under which nothing could ever be shown.
func (p Policy) Validate() error {
	switch {
	case p.Window < 0 || p.Response < 0 || p.Prompt < 0 || p.Emergency < 0:
		return errors.New("policy: window and reserves must not be negative")
	case p.Window > 0 && p.Window-p.Response-p.Prompt-p.Emergency < MinReceipt:
		return fmt.Errorf("policy: of a window of %d tokens less than %d are left after the reserves (%d + %d + %d)",
			p.Window, MinReceipt, p.Response, p.Prompt, p.Emergency)
	}
	return nil
}
