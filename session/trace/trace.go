// Package trace records what a model was shown: one Call and one JSON line for each tool call, resource read and
// prompt. Totals and telemetry are computed from it.
package trace

import (
	"iter"
	"time"
)

// Version of the lines written now. Readers skip lines of other versions.
const Version = 1

// Retention is how long the calls of a day are kept.
const Retention = 30 * 24 * time.Hour

// Values of Call.Via: what a line is about.
const (
	ViaTool       = ""
	ViaResource   = "resource"   // resources/read
	ViaPrompt     = "prompt"     // prompts/get
	ViaList       = "list"       // tools/list, once for each connection and server: the list, and our instructions
	ViaCompaction = "compaction" // of a transcript: tokens before and after it
	ViaView       = "view"       // of a person who looks at an observation: it counts for no session and is not traced
	ViaCommand    = "command"    // of a command that run runs; what it was shown is not in the client's context
	ViaObserved   = "observed"   // tools/call that was passed on whole; shown is what its receipt would have had
)

// Store keeps calls: a [Log] in files, or [Rows] in a database.
type Store interface {
	// Append adds a call, each text field truncated to 200 bytes, and what it showed; nil for nothing. If it fails the
	// call is not in the trace. If only the text cannot be kept the call is added without it.
	Append(c Call, s *Shown) error
	// KeepShown sets how many bytes the texts of all processes may take in a directory; the texts of the oldest days make
	// room. In a database a process keeps an eighth of it on each day. 0 keeps none; the default is 256 MiB.
	KeepShown(max int64)
	// Shown returns the call that Read named ref, and what it showed. The error is [fs.ErrNotExist] if the call is gone or
	// ref is no name of a call here, and [ErrNotKept] if there is no text; it then returns the call nevertheless. Whose
	// call it is the caller must check.
	Shown(ref string) (Call, Shown, error)
	// Read returns the calls since a time: by day, and for each process in the order in which they were added. It skips
	// lines that are torn, foreign or of another [Version], and adds their number to skipped unless that is nil.
	// If a part cannot be read it yields the error and continues where it can. Memory does not grow with the trace.
	Read(since time.Time, skipped *int) iter.Seq2[Call, error]
	// Changed returns a text that is another one once any process has added calls today (UTC). It reads no call.
	Changed() (string, error)
	// Close may be called again.
	Close() error
}

// Call is one tool call: what was asked, seen and shown, and its cost. Fields that older lines do not have are empty
// in them.
type Call struct {
	// Ref names the call in its store. Read sets it: at most 80 bytes of letters, digits, '_', '-' and '.', fit for a URL.
	Ref string `json:"-"`

	V           int       `json:"v"`  // set by Append
	At          time.Time `json:"at"` // UTC, start
	Session     string    `json:"session"`
	Owner       string    `json:"owner"`
	Tool        string    `json:"tool"`
	Server      string    `json:"server,omitempty"` // upstream server that has the tool; "": it is ours
	CallHash    string    `json:"call_hash"`
	Name        string    `json:"name,omitempty"` // what the tool called its output: the programs of a command
	Status      string    `json:"status"`         // success | failure | timeout | cancelled
	Verdict     string    `json:"verdict"`
	SeenBytes   int64     `json:"seen_bytes"`
	SeenTokens  int64     `json:"seen_tokens"`
	SeenMargin  float64   `json:"seen_margin,omitempty"`
	ShownTokens int64     `json:"shown_tokens"`
	ShownBytes  int64     `json:"shown_bytes,omitempty"` // of all that was shown, even if less is kept; set by Append
	Observation string    `json:"observation,omitempty"`
	Kept        bool      `json:"kept"`
	Millis      float64   `json:"ms"`
	Error       string    `json:"error,omitempty"` // truncated to 200 bytes

	Via    string   `json:"via,omitempty"`
	Source string   `json:"source,omitempty"` // file or observation that the call names
	Covers *Range   `json:"covers,omitempty"` // the part of it that was shown; nil: not a part
	Origin []string `json:"origin,omitempty"` // what a stored output was derived from, at most 8 names
	Opened []Opened `json:"opened,omitempty"` // files of which a line was shown, at most 200
	// OpenedMore is how many such files are left out of Opened.
	OpenedMore int `json:"opened_more,omitempty"`

	Reason     string `json:"reason,omitempty"`  // of the verdict
	Deficit    int    `json:"deficit,omitempty"` // tokens missing
	Limited    bool   `json:"limited,omitempty"` // a window or budget was known: Spent and Left hold
	Spent      int    `json:"spent,omitempty"`   // tokens in the context before the answer
	Left       int    `json:"left,omitempty"`    // tokens left for it
	DryRun     bool   `json:"dry_run,omitempty"`
	Notice     bool   `json:"notice,omitempty"`    // a notice was shown instead of the output
	Violation  int    `json:"violation,omitempty"` // tokens shown over what the client reported as left and a notice may take
	Window     int    `json:"window,omitempty"`
	WindowFrom string `json:"window_from,omitempty"` // reported, setting or table
	UsageFrom  string `json:"usage_from,omitempty"`  // who reported the usage; "": nobody
	Turn       string `json:"turn,omitempty"`        // as reported

	Client        string `json:"client,omitempty"`
	ClientVersion string `json:"client_version,omitempty"`
	Model         string `json:"model,omitempty"` // whose tokens were counted
}

// Opened is a file of which an answer showed something.
type Opened struct {
	File  string `json:"file"`           // absolute path
	Shown int64  `json:"shown"`          // bytes of it that were shown
	Hash  string `json:"hash,omitempty"` // SHA-256 of all of it then, in hex; "": not known
}

// Range is a part of a source, both ends included.
type Range struct {
	Unit string `json:"unit"` // lines, chars, bytes, records or rows
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Of   int64  `json:"of"` // −1: not counted
}
