// Package tools says what a tool is, and what a call may name.
//
// It holds no tool, knows neither tokens nor MCP, and runs nothing: families of
// tools stand below it, the funnel runs them.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// Effect is what a tool may do to the world.
type Effect int

// What a tool may do, from least to most.
const (
	ReadOnly Effect = iota
	Writes
	Destructive
)

// Core is the toolset that is on by default.
const Core = "core"

// Tool is one operation offered to the model. Make it with [New].
type Tool struct {
	Name, Title, Description string
	Schema                   json.RawMessage   // of the arguments, as listed; New derives it
	Help                     map[string]string // of each argument, for people on the command line; New derives it
	Effect                   Effect
	OpenWorld                bool
	Paged                    bool   // answers in pages; otherwise the funnel decides between whole and receipt
	Uncut                    bool   // its output is never cut: always whole
	Toolset                  string // Core by default
	Meta                     map[string]any
	Run                      func(ctx context.Context, in Input, out Output) error
	Check                    func(args json.RawMessage) error // says what of them Run would refuse whatever they name; New derives it
}

// Input is what a call brings. It grows by fields.
type Input struct {
	Args    json.RawMessage
	Sources Sources // this caller's roots and observations

	// Fit says how many bytes of a text, from its start, the page has room for as its next row: so much of it
	// [Output.Row] shows whole, and what is to follow begins at the byte behind it. It ends between two chars, and is 0
	// only where the page has rows already. nil: there is no limit.
	Fit func(text []byte) int

	// Weigh begins to weigh a text for the model that reads the answers; the funnel always sets it.
	Weigh func() Scale

	// Weighed is what an observation weighs for that model, by what was counted as it was kept; not ok where that tells
	// nothing. The funnel always sets it.
	Weighed func(observations.Seen) (tokens int64, off float64, ok bool)

	// Ask puts a question to the client; the funnel always sets it.
	Ask Asker
}

// Scale takes a text, by parts, and says what it costs to read.
type Scale interface {
	io.Writer // never fails
	// Weight is what was written, in tokens; off: how far it may be off, 0 for an exact count and 0.01 for ±1 %.
	Weight() (tokens int64, off float64)
}

// Call names a tool and its arguments: the exact way on. Args is marshalled as it is; empty fields are left out by its tags.
type Call struct {
	Tool string
	Args any
}

// Edge is how many bytes of each end of a row [Output.Cut] may show: no page shows as many of one.
const Edge = 128 << 10

// ErrPageFull is what [Output.Row] answers when the page is full: show no more, go on counting where that is cheap.
var ErrPageFull = errors.New("page is full")

// Output takes what a tool has to say. It is not safe for concurrent use, except Progress.
type Output interface {
	// Write takes output as it is; everything written is kept, also before an error or a timeout.
	io.Writer

	// Row takes one whole line or record (which may hold several lines: a match with its context), without
	// its final newline. Where it is longer than a page it is clipped, and more tells how to see it whole (zero: no way).
	// The error is nil or ErrPageFull: then this row was not taken.
	Row(b []byte, more Call) error

	// Cut is Row for one that is too long to be held: its beginning and its end, [Edge] bytes of each where there are as many,
	// and how many chars stand between them. It stands alone on its page, as any row that is longer.
	Cut(head, tail []byte, between int64, more Call) error

	// Stretch is Row for a piece of text that is to be shown exactly, with its line ends: it follows the one before with nothing
	// between them.
	Stretch(b []byte) error

	// Span numbers the rows of a page: the first one's number, and how many there are in all (−1: not counted).
	// It may be called any time before the tool returns; the last call counts. Without it rows count from 0.
	Span(first, total int64)

	// Reach tells what the page shows where its rows are no numbered things: a range of bytes or chars of a text, both ends
	// included, and how many of them the text has in all (−1: not counted). It stands in place of Span. A page that reaches over all of the text is all there is.
	Reach(unit string, from, to, total int64)

	// Next gives the call that shows what follows the page. For a page that is not all, it must be called.
	Next(c Call)

	// Keep keeps everything from here on, even if small, and answers with its receipt; the sources it was derived
	// from are its origin. Rows are no longer limited by a page.
	Keep(from ...string)

	// Source says that what is written stands already under this name (a path): it is never recorded, and a receipt names it.
	Source(name string)

	// Part takes an image or other content that is not text.
	Part(mime, name string) io.Writer

	// Count tells a number worth knowing: total_matches, files_with_matches, exit_code …
	Count(name string, n float64)

	// Note tells something the answer must say in one line, even in a receipt: "3 directories could not be read".
	Note(text string)

	// Progress tells how far the work is; total ≤ 0 where it is not known. Cheap; call it as often as you like.
	Progress(done, total int64, message string)
}
