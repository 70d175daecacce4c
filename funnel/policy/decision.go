package policy

// Verdict is how one output is shown.
type Verdict string

// The verdicts, from the whole output to nothing.
const (
	OK           Verdict = "ok"            // the whole output, or its receipt if it is large
	NeedsSummary Verdict = "needs_summary" // a receipt that fits into what is left
	Reject       Verdict = "reject"        // only the totals, and what is left
)

// Decision is the policy's answer for one output.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Deficit int     `json:"deficit"` // tokens missing; 0 for OK
	Left    int     `json:"-"`       // tokens left for this answer; 0: unknown
}

// Size is the size of an output.
type Size struct {
	Lines, Chars, Bytes int64
	Tokens              int64
}
