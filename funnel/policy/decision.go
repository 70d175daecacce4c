package policy

import (
	"math"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Verdict is how one output is shown.
type Verdict string

// The verdicts, from the whole output to nothing.
const (
	OK           Verdict = "ok"            // the whole output, or its receipt if it is large
	NeedsSummary Verdict = "needs_summary" // a receipt that fits into what is left
	Reject       Verdict = "reject"        // a notice, which the emergency buffer pays for
)

// Tokens of a notice, at most: of the first one of a session, and of the later ones. Without a reserve for notices
// those of one turn take at most UnsetBuffer.
const (
	FirstNotice = 160
	Notice      = 24
	UnsetBuffer = 1024
)

// ImageTokens is counted for an image.
const ImageTokens = tokens.Image

// Decision is the policy's answer for one output.
type Decision struct {
	Verdict    Verdict `json:"verdict"`
	Reason     string  `json:"reason"`
	Deficit    int     `json:"deficit"`               // tokens missing; 0 for OK
	DryRun     bool    `json:"dry_run,omitempty"`     // the output is shown as if the verdict were OK
	Window     int     `json:"window,omitempty"`      // the context window; 0: unknown
	WindowFrom string  `json:"window_from,omitempty"` // "reported" by the client, a "setting", or the "table" of models
	Source     string  `json:"usage_from,omitempty"`  // who reported the usage; "": nobody

	Limited bool `json:"-"` // something limits the prompt: Left is known
	Left    int  `json:"-"` // tokens left for this answer
	Spent   int  `json:"-"` // tokens in the context before it
	Buffer  int  `json:"-"` // tokens left of the emergency buffer in this turn, for what does not fit into Left
}

// Size is the size of an output.
type Size struct {
	Lines, Chars, Bytes int64
	Tokens              int64
	Margin              float64 // of Tokens: 0.25 is ± 25 %; 0: exact
}

// AtMost returns the upper bound of a number of tokens with this margin.
func AtMost(tokens int64, margin float64) int {
	most := math.Ceil(float64(max(tokens, 0)) * (1 + max(margin, 0)))
	return int(min(most, math.MaxInt32))
}
