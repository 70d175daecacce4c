package funnel

import (
	"encoding/json"
	"io"
	"log/slog"

	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type (
	// Policy is how a budget is computed; see the package policy, as for the other two.
	Policy = policy.Policy
	// Limits are when an output is large, and the sizes of what is shown.
	Limits = policy.Limits
	// Decision is what a policy decided, and why.
	Decision = policy.Decision
)

// Options of a funnel.
type Options struct {
	Store   *observations.Store // nil: nothing is stored, and every receipt says so
	NoStore error               // why Store is nil; nil: no reason is given
	Trace   trace.Store         // nil: none
	Counter *tokens.Counter     // nil: one for o200k_base
	Model   string              // name of the model whose tokens Counter counts; "" for none
	Policy  Policy
	Limits  Limits
	Tools   map[string]ToolLimits // by the name of a tool; nil: none

	Accounts *usage.Accounts // of sessions whose clients report their usage; nil: in memory only

	SavedTo bool // receipts name the data file: for stdio and the command line only
	// Link returns the URL that receipts name, by which anyone can read an observation for some time; "" for none. nil:
	// there are none.
	Link    func(owner string, id observations.ID) string
	Offered []string     // names of the tools a receipt may name in its next step; nil: jq, grep and slice
	Hint    string       // another use of a stored output, which a receipt's next step names; "": none
	Log     *slog.Logger // nil: none

	Mask   *secrets.Masker // masks what is shown, traced and logged; nil: nothing is masked
	Redact bool            // the store gets masked text too; needs Mask
}

// ToolLimits are limits of one tool, which go before those of the funnel.
type ToolLimits struct {
	Limits Limits // zero fields are the funnel's
	Uncut  bool   // its outputs are shown whole, or not at all
}

// Keep says when an output is stored.
type Keep int

// When an output is stored.
const (
	Auto   Keep = iota // if it is large
	Always             // even if it is small
	Never
)

// Session is one client's context, and its owner.
type Session struct {
	ID    string
	Owner string // observations.Local on stdio and the command line
}

// Request is one tool call.
type Request struct {
	Tool    tools.Tool
	Args    json.RawMessage
	Who     Session
	Sources tools.Sources
	Keep    Keep
	Limits  Limits       // its fields that are not zero replace the funnel's
	Via     string       // see [trace.Call]
	Client  Client       // zero: unknown
	Uncut   bool         // the output is shown whole, or not at all
	Usage   *usage.Usage // what the client reported with the call; nil: nothing
	Name    string       // of the observation (keep --name)
	About   string       // of Show: the observation, obs:ID, that the text is about; "" for none
	Command string       // runs a tool of this server, for a caller who has none: receipts name it; "" for no such caller
	// Expected is the number of bytes of the output if it is known, else 0. Over 16 MiB, no token is counted exactly
	// that would then be estimated.
	Expected int64
	Caller   *tools.Caller // for a tool that calls others; nil: there are none
	Whole    io.Writer     // gets the text of the output with secrets masked, all of it; the answer has notes and errors alone
	Ask      tools.Asker   // asks the client a tool's question; nil: there is no client to ask
	Complete bool          // the output is stored only if the tool succeeded and all of it has room
	Repeated bool          // the call repeats one that asked, and carries the replies

	// Progress is called from any goroutine, one call at a time, at most 10 times a second. Call waits for the last
	// one, so it must not block for long. nil: none.
	Progress func(done, total int64, message string)
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
	Receipts []Receipt // one for each observation or source the answer names; at least one
	Failed   bool      // isError
	Extra    any       // see [tools.Output.Attach]; nil: nothing

	// Raw is the result of an upstream server that is sent in place of all this; Blocks then follow its content. nil: none.
	Raw  json.RawMessage
	Meta map[string]json.RawMessage // further members of _meta, of an upstream server
}

// Receipt describes an answer for programs. The server sends it as _meta["funnel/receipt"] with every answer.
type Receipt struct {
	Complete      bool               `json:"complete"` // the whole output is in this answer
	Kept          bool               `json:"kept"`
	Truncated     bool               `json:"truncated"` // the stored output is not complete
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
	Masked        int                `json:"masked,omitempty"`   // secrets masked in the whole output
	Redacted      bool               `json:"redacted,omitempty"` // they are masked in the store too
	SavedTo       string             `json:"full_output_saved_to,omitempty"`
	Link          string             `json:"link,omitempty"`
	ShownTokens   int64              `json:"shown_tokens"`
	Cost          *float64           `json:"cost,omitempty"`
	SHA256        string             `json:"sha256,omitempty"`
	Millis        float64            `json:"duration_ms"`
	Decision      Decision           `json:"decision"`
	Metadata      map[string]float64 `json:"metadata,omitempty"` // what the tool counted

	NotKept string `json:"-"` // why the output was not stored; "" if it was, or is shown whole
}
