// Package funnel runs a tool, records what it wrote, and decides how much of it is shown.
//
// It does not speak MCP and holds no tool. It is the one place where text
// meant for the model is clipped, made visible and counted.
//
// What others wrote is shown so that it cannot be taken for this server's own
// words: a line that imitates a line of a receipt gets ">" before it (see defuse).
package funnel

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/trace"
)

// Options of a funnel.
type Options struct {
	Store   *observations.Store // nil: nothing can be kept; every receipt says so
	NoStore error               // why there is no store, where there is none; nil: just that
	Trace   *trace.Log          // nil: none
	Counter *tokens.Counter     // nil: of o200k_base
	Policy  Policy
	Limits  Limits
	SavedTo bool            // receipts name the data file: stdio and the command line only
	Offered func() []string // names of the tools offered now: a receipt's hint names only these; nil: jq, grep and slice
	Log     *slog.Logger    // nil: none

	Mask   *secrets.Masker // of what is shown, traced and logged; nil: nothing is masked
	Redact bool            // what is kept is masked too; needs Mask
}

// Funnel is safe for concurrent use.
type Funnel struct {
	o     Options
	spent spent
}

// New fails where a limit is out of its range, saying which and what the range is.
func New(o Options) (*Funnel, error) {
	l, err := o.Limits.over(defaults)
	if err != nil {
		return nil, err
	}
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	if o.Redact && o.Mask == nil {
		return nil, errors.New("redact: what is kept cannot be masked where nothing is (--redact-store with --no-mask)")
	}
	o.Limits = l
	if o.Counter == nil {
		o.Counter = tokens.New(tokens.O200k)
	}
	return &Funnel{o: o}, nil
}

// Keep says whether an output is kept.
type Keep int

// When an output is kept.
const (
	Auto   Keep = iota // where it is large
	Always             // even if small
	Never
)

// Session is one client's context, and who it belongs to.
type Session struct {
	ID    string
	Owner string // observations.Local on stdio and the command line
}

// Request is one tool call.
type Request struct {
	Tool     tools.Tool
	Args     json.RawMessage
	Who      Session
	Sources  tools.Sources
	Keep     Keep
	Limits   Limits // where not zero, in place of the funnel's
	Meta     map[string]any
	Name     string                                  // of the observation (keep --name)
	Ask      tools.Asker                             // puts a tool's question to the client; nil: there is none to ask
	Progress func(done, total int64, message string) // from any goroutine, one at a time, at most 10 a second; Call waits for the last one, so it must not block for long; nil: none
}

// Block is one part of an answer: text, or an image with its MIME type.
type Block struct {
	Text string
	MIME string // "" for text
	Name string
	Data []byte
}

// Answer is what the model is shown.
type Answer struct {
	Blocks   []Block
	Receipts []Receipt // one for each observation or source the answer speaks of; always at least one
	Failed   bool      // isError
}

// Receipt is told as _meta["funnel/receipt"], with every answer.
type Receipt struct {
	Complete      bool               `json:"complete"` // all of it is in this answer
	Kept          bool               `json:"kept"`
	Truncated     bool               `json:"truncated"` // what was kept is not all there was
	ObservationID string             `json:"observation_id,omitempty"`
	URI           string             `json:"uri,omitempty"`
	Kind          string             `json:"kind"`
	Lines         int64              `json:"total_lines"`
	Chars         int64              `json:"total_chars"`
	Bytes         int64              `json:"total_bytes"`
	Tokens        int64              `json:"total_tokens"`
	TokensExact   bool               `json:"tokens_exact"`
	TokensMargin  float64            `json:"tokens_margin,omitempty"`
	Matches       *int64             `json:"total_matches,omitempty"`
	Files         *int64             `json:"files_with_matches,omitempty"`
	Status        string             `json:"status_flag"`        // success | failure | timeout | cancelled
	Masked        int                `json:"masked,omitempty"`   // secrets that are masked in what is shown, of the whole output
	Redacted      bool               `json:"redacted,omitempty"` // they are masked in what is kept too
	SavedTo       string             `json:"full_output_saved_to,omitempty"`
	ShownTokens   int64              `json:"shown_tokens"`
	Cost          *float64           `json:"cost,omitempty"`
	SHA256        string             `json:"sha256,omitempty"`
	Millis        float64            `json:"duration_ms"`
	Decision      Decision           `json:"decision"`
	Metadata      map[string]float64 `json:"metadata,omitempty"` // what the tool counted

	NotKept string `json:"-"` // why what the answer's receipt stands for was not kept; "" where it was, or all of it is shown
}

// Call runs one tool call. Its error is only for a context that was cancelled by the caller
// (no answer is due then), and for a run in which Request.Ask answered [tools.ErrAsked]: that error,
// nothing kept. A tool's failure is an Answer with Failed.
//
// Where the context has a deadline and it passes, the answer says so and tells what was written until then.
func (f *Funnel) Call(ctx context.Context, r Request) (Answer, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Answer{}, ctx.Err()
	}
	if r.Who.Owner == "" {
		r.Who.Owner = observations.Local
	}
	c := newCall(ctx, f, r)
	limits, err := r.Limits.over(f.o.Limits)
	if err != nil {
		return c.refuse(err), nil
	}
	c.limits = limits
	return c.answerTo()
}

// Reset forgets what a session has spent: its client began a new context, or compacted it.
func (f *Funnel) Reset(who Session) { f.spent.reset(who) }

// Spent is how many tokens a session was shown since its beginning or its last Reset; 0 where no window is known.
func (f *Funnel) Spent(who Session) int { return f.spent.of(who) }
