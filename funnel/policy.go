package funnel

import (
	"errors"
	"fmt"
	"math"
)

// Verdict of the policy on one output.
type Verdict string

// The verdicts, from all to nothing.
const (
	OK           Verdict = "ok"            // whole, or its receipt where it is large
	NeedsSummary Verdict = "needs_summary" // a receipt of what is left at most
	Reject       Verdict = "reject"        // only what there was to show, and what is left
)

// Decision is what the policy says of one output.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Deficit int     `json:"deficit"` // tokens missing; 0 for ok
	Left    int     `json:"-"`       // tokens left for this answer; 0: not known
}

// Size of an output, as the policy needs it.
type Size struct {
	Lines, Chars, Bytes int64
	Tokens              int64
}

// Policy is a model's room. The zero value knows no window and rejects nothing.
type Policy struct {
	Window    int     // context window in tokens; 0: not known
	Response  int     // kept free for the model's answer
	Prompt    int     // kept free for the prompt
	Emergency int     // never used
	Summary   float64 // share of the usable window above which a summary is due: 0.8
	DryRun    bool    // decides and records, but shows as if ok
	Disabled  bool    // passes everything through up to 1 MB an answer
}

// summaryShare is Policy.Summary where it is 0.
const summaryShare = 0.8

// Decide says what becomes of an output after spent tokens of the window are
// used. It is pure. What is usable is the window without its three reserves;
// what is left is the usable part without what is spent.
//
// The first of these that holds decides:
//
//  1. Disabled: ok.
//  2. No window is known: ok.
//  3. The output fits neither into what is left, nor would the smallest receipt (160 tokens): reject.
//  4. The output does not fit into what is left: needs_summary.
//  5. With it, more than the Summary share of what is usable would be spent: needs_summary.
//  6. Otherwise: ok.
//
// DryRun changes nothing here: it is the funnel that then shows as if ok.
// The deficit is what is missing to what is left (3, 4) or to the share (5).
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
	share := p.Summary
	if share <= 0 {
		share = summaryShare
	}
	mark := int(math.Floor(min(share, 1) * float64(usable)))
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

// check refuses a policy under which nothing could ever be shown.
func (p Policy) check() error {
	switch {
	case p.Window < 0 || p.Response < 0 || p.Prompt < 0 || p.Emergency < 0:
		return errors.New("policy: window and reserves must not be negative")
	case p.Summary < 0 || p.Summary > 1:
		return fmt.Errorf("policy: summary share %g is not between 0 and 1", p.Summary)
	case p.Window > 0 && p.Window-p.Response-p.Prompt-p.Emergency < MinReceipt:
		return fmt.Errorf("policy: of a window of %d tokens less than %d are left after the reserves (%d + %d + %d)",
			p.Window, MinReceipt, p.Response, p.Prompt, p.Emergency)
	}
	return nil
}
