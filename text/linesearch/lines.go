// Package linesearch finds the lines of a text that match.
//
// A text is bytes that are mostly UTF-8. Callers compile a pattern by [Compile] and search by [Matcher.Scan] or
// [Matcher.Find].
//
// A needle is a literal text: each match of a pattern holds at least one of the needles derived from the pattern. A
// block is a buffer of whole lines; a chunk is a range of a text given to one worker. A window is the part of a long
// line that is emitted. To walk is to run the automaton over bytes.
package linesearch

import (
	"errors"
	"io"
	"regexp"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/text/linesearch/literal"
)

// Pattern describes the text to search for.
type Pattern struct {
	Expr       string // RE2 syntax, at most [MaxPattern] bytes
	Literal    bool   // Expr is a literal text, not a regular expression
	IgnoreCase bool
	Multiline  bool // a match may span lines; ^ and $ still match at each line
}

// Limits of a pattern. The size of the program bounds the time: the regexp package takes 5 to 20 ns for each
// instruction and byte. A list of words may be larger: of its program, few instructions run at once.
const (
	MaxPattern = 256 << 10 // maximum length in bytes
	MaxProgram = 2000      // maximum number of instructions of the compiled program
)

// ErrLineEnd is returned for a pattern that contains \n without Multiline: the pattern could never match.
var ErrLineEnd = errors.New(`\n never stands inside a line`)

// Options of a scan.
type Options struct {
	Invert        bool // find the lines that do not match; not with Multiline
	Before, After int  // number of context lines emitted before and after each match
	Window        int  // maximum bytes emitted of a line, around its match; 0: [DefaultWindow]

	// Progress is called after each block with the number of bytes searched so far, but not if matches may span lines.
	// Progress may be nil.
	Progress func(done int64)
}

// DefaultWindow is the default of Options.Window, in bytes.
const DefaultWindow = 4 << 10

// Line is a line passed to a visitor, without its line end (\n or \r\n): a match, or context around a match. With
// Multiline a match is one Line with all lines it touches; matches that share a line are passed as one.
type Line struct {
	Number int64  // line number, from 1
	End    int64  // number of the last line of a match over several lines, else Number
	Offset int64  // offset in the text at which line Number starts, in bytes
	Size   int64  // length of the line or lines in bytes, without the last line end
	Text   []byte // the line, or a window of it; valid until the visitor returns
	At     int64  // offset in the line at which Text starts; 0 if the line is whole
	// Column is the position in the line at which the match starts, in bytes from 1. It is set only in truncated matches,
	// but not in inverted ones; else 0.
	Column int64
	Match  bool // false: context
}

// Cut returns how many bytes of the line are missing from Text.
func (l Line) Cut() int64 { return l.Size - int64(len(l.Text)) }

// Totals counts the lines, matches and bytes of a scan.
type Totals struct {
	Lines   int64 // lines searched, including a last line without line end
	Matches int64
	Bytes   int64 // number of bytes searched
	Letters bool  // the pattern has \b, \w or \d, and the text (of a line, its first MiB) has non-ASCII letters
	Short   bool  // only the first Bytes bytes of the text were searched, see [Matcher.Scan]
}

// A visitor may return Stop or Quiet, which are not errors of the scan.
var (
	Stop  = errors.New("stop")  //nolint:staticcheck // no error: Stop ends the scan
	Quiet = errors.New("quiet") //nolint:staticcheck // no error: further lines are counted, not emitted
)

// Matcher is a compiled [Pattern]. It is safe for concurrent use. If the pattern names \r, a \r before a \n is text;
// otherwise that \r is part of the line end.
type Matcher struct {
	// The forms of the pattern: the regexp package cannot start a search inside a text. Two are compiled when called.
	re   func() *regexp.Regexp // matches one line as a separate text; with multi, the whole text
	tail func() *regexp.Regexp // starts one rune before a position: group 1 is the first match after it in its line
	rest *regexp.Regexp        // with multi, starts at the start of a later line: \A never matches

	instructions int               // approximate size of the program
	auto         func() *automaton // makes the automaton when first called; nil if only regexp can be used
	abandoned    *atomic.Bool      // the automaton was abandoned: the next Compile makes a new Matcher

	need        literal.Requirement
	newSearcher func() literal.Searcher // makes searchers for the needles with vectors; nil if not possible
	longest     int                     // bytes of the longest match; -1: any
	list        bool                    // a list of words, which may have more instructions than others

	ascii bool // the pattern has classes for ASCII: see UsesASCII
	cr    bool // the pattern names \r, so \r is text; otherwise \r\n is a line end
	multi bool // matches may span lines

	sizes sizes
}

// emitter passes lines to the visitor and counts matches.
type emitter struct {
	Options
	visit       func(Line) error
	quiet       bool  // the visitor wants no further lines, or is nil
	lastEmitted int64 // number of the last line emitted
	contextLeft int   // number of lines after the last match that are still to be emitted as context
	totals      Totals
}

// match counts a match and emits its line.
func (e *emitter) match(l Line) error {
	e.totals.Matches++
	if e.quiet {
		return nil
	}
	l.Match = true
	e.contextLeft = e.After
	return e.emit(l)
}

func (e *emitter) emit(l Line) error {
	if e.quiet {
		return nil
	}
	e.lastEmitted = l.End
	err := e.visit(l)
	if errors.Is(err, Quiet) {
		e.quiet, e.contextLeft, err = true, 0, nil
	}
	return err
}

// before returns the number of context lines due before line number n.
func (e *emitter) before(n int64) int64 {
	if e.quiet {
		return 0
	}
	return min(int64(e.Before), n-1-e.lastEmitted)
}

// sizes are the sizes of buffers and chunks. Tests set small sizes to reach every boundary.
type sizes struct {
	block int // bytes read at once; a block fits into the L2 cache
	held  int // maximum bytes of a line in memory; a longer line is searched in chunks
	// bytes of a long line kept in memory after they were searched: for needles across chunks and for the window
	// around a match
	history int
	text    int // with multi, maximum bytes of a text in memory; a longer text is reread for each search

	large   int64 // minimum size in bytes of a text that several workers search
	workers int   // maximum number of workers, also limited by GOMAXPROCS
	overlap int   // bytes read after a chunk to find the end of its last line
}

var defaultSizes = sizes{
	block: 256 << 10, held: 1 << 20, history: 64 << 10, text: 4 << 20, large: 8 << 20, workers: 2, overlap: 16 << 10,
}

// sizedReaderAt is a reader whose text can be read again.
type sizedReaderAt interface {
	io.ReaderAt
	Size() int64
}
