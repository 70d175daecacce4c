// Package tools defines what a tool is, its arguments, and the output it writes to.
//
// The packages below tools/ implement tools, and package funnel runs them.
package tools

import (
	"context"
	"encoding/json"
	"io"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Effect is the kind of side effects a tool may have.
type Effect int

// The effects, from none to most.
const (
	ReadOnly Effect = iota
	Writes
	Destructive
)

// Opens says which files an answer of a tool shows lines of. The trace records them.
type Opens int

// The files that answers show.
const (
	OpensNothing Opens = iota
	OpensHits          // the member file of each record of the output, if the record has the text of a line
	OpensLines         // the names before lines of the output, as grep prints them: "NAME:12:text", "NAME-12-text"
	OpensSource        // the file that the call names as source or path, or the files of headings "==> NAME <=="
)

// MetaNamed is a value for [Output.Attach] that is sent as member funnel/NAME of _meta.
type MetaNamed interface{ MetaName() string }

// Result is the result of tools/call of an upstream server, of which a tool has written the output. It is sent in place
// of the answer as Pass says.
type Result struct {
	Raw       json.RawMessage // as the server wrote it
	Pass      Pass
	Text      string                     // all text of Raw, also what is in a note or stored apart
	Second    string                     // JSON that the output does not have: a second text if Raw is not sent
	Meta      map[string]json.RawMessage // of Raw; sent with the answer if Raw is not
	NotStored bool                       // a part of Raw could not be stored
	Failed    bool                       // the server says that the call failed
}

// Pass says when a [Result] is sent as it was written.
type Pass int

// When a result is sent as it was written.
const (
	PassWhole     Pass = iota // if the answer shows the whole output as it was written, or if that cannot be stored
	PassNotStored             // only if it cannot be stored: the output has not all text of it
	PassNever                 // it holds what must be masked or made visible, or is stored in part
)

// Core is the toolset that is on by default.
const Core = "core"

// Tool is one operation offered to the model. Make it with [New].
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage   // JSON Schema of the arguments, as listed; New sets it
	Listing                  json.RawMessage   // its entry of tools/list, of an upstream server; nil: made from these fields
	Help                     map[string]string // help text of each argument on the command line; New sets it
	Rules                    []string          // sentences that the command line's help shows above the arguments
	Effect                   Effect
	OpenWorld                bool
	Terminal                 bool   // writes for a terminal: colours and overwritten lines are not shown
	Paged                    bool   // returns pages; otherwise the funnel decides between whole output and receipt
	Toolset                  string // Core by default
	Server                   string // name of the upstream server that has it; "": it is ours
	Opens                    Opens  // which files an answer shows lines of
	Less                     string // a call of this tool that gives less, for a context that is nearly full; "": none
	Calls                    bool   // it calls other tools; see [Input.Caller]
	Whole                    Whole  // an output within it is shown whole, unless the operator or the call sets limits
	Run                      func(ctx context.Context, in Input, out Output) error
	// Check returns the error that Run would return for every source. It opens none. New sets it.
	Check func(args json.RawMessage) error
}

// Whole is a tool's own limit of what is shown whole. A zero field means the operator's limit.
type Whole struct{ Lines, Tokens int }

// Input is the input of one call. Later versions may add fields.
type Input struct {
	Args    json.RawMessage
	Sources source.Set // this caller's roots and observations
	Owner   string     // of what the call stores or starts: [observations.Local] on stdio and the command line
	Session string     // of the client, as the trace names it; "" is none

	// BytesThatFit returns how many bytes of text, from its start, the page can take as its next row: [Page.Row]
	// shows that much whole, and the next page begins at the byte after it. It never splits a char, and returns 0 only
	// if the page has rows already. nil: there is no limit.
	BytesThatFit func(text []byte) int

	// NewTokenCounter starts a count for the model that reads the answers; the funnel always sets it.
	NewTokenCounter func() TokenCounter

	// ObservationTokens returns the stored token count of an observation for that model; ok is false if it cannot be
	// converted. The funnel always sets it.
	ObservationTokens func(observations.Stats) (tokens int64, margin float64, ok bool)

	// Meta are the members of the call's _meta that are for the server behind a tool; nil: there are none, or the tool
	// has no server.
	Meta map[string]json.RawMessage

	// Ask puts a question to the client; the funnel always sets it.
	Ask Asker

	// Repeated says that the call repeats one that asked, and carries the client's replies.
	Repeated bool

	// AsShown reports whether a text is shown as it is: nothing in it is masked or escaped. The funnel always sets it.
	AsShown func(text string) bool

	// Caller calls other tools as parts of this call; nil: there are none, or [Tool.Calls] is not set.
	Caller *Caller

	// Mask masks the secrets in a text, those of the arguments too; for what [Output.Attach] sends. The funnel always
	// sets it.
	Mask func(text string) string
}

// Caller calls other tools with the identity, the sources and the session of a call, and traces each. Its functions are
// safe for concurrent use, until that call has ended.
type Caller struct {
	// Tools returns the tools of this server and of its upstream servers.
	Tools func(ctx context.Context) ([]Tool, error)

	// Call runs a tool and writes the text of its output to w, all of it, with secrets masked; with shown, what a model
	// would be shown. It returns what must be said besides, which has the error if the tool failed, unless the output is
	// that error, as that of an upstream server is. err is the cause of ctx if that ended first.
	Call func(ctx context.Context, t Tool, args json.RawMessage, shown bool, w io.Writer) (
		says string, failed bool, err error)
}

// CountTokens counts the tokens of a text for the model that reads the answers.
func (in Input) CountTokens(text string) int {
	c := in.NewTokenCounter()
	_, _ = io.WriteString(c, text) // never fails
	n, _ := c.Total()
	return int(n)
}

// Stored is a text that a tool stores besides its answer; see [Output.Store].
type Stored struct {
	Text  []byte
	Long  io.Reader       // in place of Text, for one that need not be in memory
	Exact bool            // it must be stored as it is: an error where the store masks secrets and it has one
	Name  string          // shown in lists
	Args  any             // arguments that are stored with it, without the text
	From  []string        // sources it was derived from
	State json.RawMessage // what the tool needs to go on with it, at most 24 KiB; see [observations.Stats]
}

// TokenCounter counts the tokens of a text that is written to it in parts.
type TokenCounter interface {
	io.Writer // never fails
	// Total returns the tokens written so far and the margin of error: 0 for an exact count, 0.01 for ±1 %.
	Total() (tokens int64, margin float64)
}

// Call names a tool and its arguments: the call that continues a page. Args is marshalled as it is; its tags leave out
// empty fields.
type Call struct {
	Tool string
	Args any
}

// SliceArgs are the arguments of the slice tool. Other tools use them for the calls that show the rest of a truncated
// row.
type SliceArgs struct {
	Source  string  `json:"source" jsonschema:"path or obs:ID" help:"File, or obs:ID."`
	Lines   string  `json:"lines,omitempty" jsonschema:"from 1: 5, 5-9, 5- or -9 (the last 9)" help:"Lines, counted from 1: 5, 5-9, 5- (to the end) or -9 (the last 9). Give exactly one of lines, chars, bytes, records and at; only records and at may be combined."`
	Chars   string  `json:"chars,omitempty" jsonschema:"from 0" help:"Characters, counted from 0, in the same form as lines."`
	Bytes   string  `json:"bytes,omitempty" jsonschema:"from 0" help:"Bytes, counted from 0, in the same form as lines; a binary file is shown as a hex dump."`
	Records string  `json:"records,omitempty" jsonschema:"from 0: elements, NDJSON lines, rows, diff files" help:"Records, counted from 0, in the same form as lines: elements of a JSON array, NDJSON lines, CSV rows, files of a diff, commits of a git log, or lines of another text."`
	At      *string `json:"at,omitempty" jsonschema:"JSON Pointer; records then count within it" help:"JSON Pointer to one value of a JSON text, such as /items/3/name; with records, elements of that value. In a diff: /3, its file 3, or /3/hunks/0."`
}

// Output takes the output of a tool. Only Progress is safe for concurrent use.
type Output interface {
	// Write appends output unchanged. Everything written is part of the result, even if an error or a timeout follows.
	io.Writer

	// Streams makes the output that of a command, and returns the writers of its two streams. All bytes are stored, in the
	// order of the writes; those of standard error are marked where they are shown. If both wrote, kind and jq read
	// standard output alone. name names the output in lists of observations and in the trace: the programs of the
	// command; "" is no name. The writers return an error if anything was written before Streams was called.
	Streams(name string) func(stderr bool) io.Writer

	// Answered says that an earlier answer has shown what was written so far, and stored it as the given observation
	// ("": it stays beside this one). The output is stored as a whole and replaces that one, unless it is pinned or has
	// more; the answer shows what follows, below the totals.
	Answered(replaces string)

	// Page returns the page of the answer. Without [Tool.Paged] it makes the output a page, which is never stored; if
	// anything was written before, rows are lines of the output instead. Write returns an error after the first row.
	Page() Page

	// Keep stores everything written from here on, even if it is small, and the answer is its receipt; from are the
	// sources it was derived from. Rows are no longer limited by a page.
	Keep(from ...string)

	// OnStored sets a function that is called with the ID of the stored output, if it is stored.
	OnStored(f func(id string))

	// Store stores a text as an observation of its own and returns its ID. The answer does not show it. An error says why
	// it is not stored.
	Store(s Stored) (id string, err error)

	// Attach sends a value with the answer, as member funnel/TOOL of its _meta: what a program may read. A [MetaNamed]
	// value has a name of its own.
	Attach(v any)

	// Source says that the output is the content of this source (a path): it is never stored, and a receipt names it.
	Source(name string)

	// Part returns a writer for an image or other content that is not text.
	Part(mime, name string) io.Writer

	// Count reports a number: total_matches, files_with_matches, exit_code …
	Count(name string, n float64)

	// Note adds a line that the answer must show, even if it is a receipt: "3 directories could not be read".
	Note(text string)

	// Cut says that the tool dropped so many bytes: the output is kept in part.
	Cut(bytes int64)

	// Quoted says that the output may be what a command quoted from files: an error in it is none of the command, and its
	// receipt names no first and last one.
	Quoted()

	// Since sets what the receipt says of what changed since an earlier call; an output that is shown whole does not say
	// it. With same, nothing has, and the receipt is one line if it or a note says so.
	Since(says string, same bool)

	// ResolveWith sets how the files that were shown are found: resolve returns the absolute path of a file by its name in
	// this call; ok is false for a name that is not below a root.
	ResolveWith(resolve func(name string) (path string, ok bool))

	// Pass sets the result of an upstream server, which the answer may be as that server wrote it.
	Pass(r Result)

	// Findings sets lines that a receipt shows before what it says of the kind: the errors in the output of a compiler.
	Findings(lines []string)

	// Progress reports how far the work is; total ≤ 0 if it is unknown. It is cheap: call it as often as you like.
	Progress(done, total int64, message string)
}
