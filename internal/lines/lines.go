// Package lines finds the lines of a text that match.
//
// It does not walk trees, decode text or know of tools; the text is bytes that
// are mostly UTF-8, and how matches are found is nobody else's business: the
// face is [Compile], [Matcher.Scan] and [Matcher.Find].
package lines

import (
	"context"
	"errors"
	"io"
	"regexp"
	"sync/atomic"

	"github.com/mcp-funnel/mcp-funnel/internal/recent"
)

// Pattern is what to look for.
type Pattern struct {
	Expr       string // RE2 syntax, at most [MaxPattern] bytes
	Literal    bool   // Expr is the text itself
	IgnoreCase bool
	Multiline  bool // a match may reach over line ends; ^ and $ still mean a line's
}

// Bounds of a pattern. Matching costs about 5 to 20 ns × instructions × bytes
// (measured on stdlib regexp), so the program's size is what bounds the time.
const (
	MaxPattern = 64 << 10 // bytes
	MaxProgram = 2000     // instructions of the compiled program
)

// ErrLineEnd is answered for a pattern that names the line end without Multiline: it could never match.
var ErrLineEnd = errors.New(`\n never stands inside a line`)

// Options of a scan.
type Options struct {
	Invert        bool // the lines that do not match; not with Multiline
	Before, After int  // lines of context told beside each match
	Window        int  // a longer text is told as a window of this many bytes around its match; 0 is [DefaultWindow]

	Progress func(done int64) // told now and then how many bytes were looked at, but not where a match may reach over lines; may be nil
}

// DefaultWindow is how many bytes of a line are told unless asked otherwise.
const DefaultWindow = 4 << 10

// Line is one line told to a visitor, without its line end (\n or \r\n): a match, or context beside one.
// With Multiline a match holds all the lines it touches; matches that share a line are told as one.
type Line struct {
	Number int64  // from 1
	End    int64  // the last line of a match over several lines, else Number
	Offset int64  // byte of the text at which line Number starts
	Size   int64  // bytes from there to the last line's end
	Text   []byte // those bytes, or a window of them; valid until the visitor returns
	At     int64  // byte of the line at which Text starts: 0 where it is whole
	Column int64  // byte of the line at which the match starts, from 1; 0 where it was not needed: in whole or inverted lines, and in context
	Match  bool   // false: context
}

// Cut is how many bytes of the line Text leaves out.
func (l Line) Cut() int64 { return l.Size - int64(len(l.Text)) }

// Totals say what a scan saw.
type Totals struct {
	Lines   int64 // looked at; a last one without line end counts
	Matches int64
	Bytes   int64 // looked at
	Short   bool  // the text goes on, but was looked at only as far as Bytes: see [Matcher.Scan]
}

// What a visitor may answer besides nil and an error of its own.
var (
	Stop  = errors.New("stop")  //nolint:staticcheck // no error: it ends the scan
	Quiet = errors.New("quiet") //nolint:staticcheck // no error: no more lines are told, but counted
)

// Matcher is a compiled [Pattern]. It is safe for concurrent use. To a pattern that names \r, the one before a \n
// is text; to any other it is a part of the line end.
type Matcher struct {
	re     *regexp.Regexp    // one line as a text of its own; with multi, the whole text
	weight int               // instructions, about
	auto   func() *automaton // nil: regexp must do
	spent  *atomic.Bool      // its automaton was given up, for a text it is no good for: the next call has another

	needles []needle      // every match holds at least one of them; none: not known
	vectors func() seeker // finds the same, faster; nil: there are none for them
	sure    bool          // a line that holds a needle matches
	near    bool          // between a match's start and its first needle there is no line end
	head    bool          // no match of a line starts before its first needle, nor needs to know what stands there

	cr         bool           // the pattern names \r, so that it is text; otherwise \r\n is a line end
	multi      bool           // matches may reach over line ends
	rest, tail *regexp.Regexp // with multi: see compileMultiline

	bounds bounds
}

// Compile refuses a pattern that does not parse, with a caret under the bad
// place, and one that is too large or too costly.
func Compile(p Pattern) (*Matcher, error) {
	if m, ok := compiled.Get(p); ok && !m.spent.Load() {
		return m, nil
	}
	m, err := compile(p)
	if err == nil {
		compiled.Put(p, m, m.weight+len(p.Expr))
	}
	return m, err
}

// compiled are the patterns that were compiled last: the next page of an answer, or the next file, is asked for with the same
// one. Compiling takes some 15 µs, and 80 to 150 µs with the automaton, which is made where a line has to be looked at
// (BenchmarkFirstLine, 2 shared cores of a Xeon). All that are kept hold 2 MB or less; the states of an automaton, 150 KB or more, are the
// garbage collector's when nobody walks.
var compiled = recent.New[Pattern, *Matcher](4 * MaxProgram)

// Scan tells visit the lines of r that match, with their context, in order, each line once, and counts them.
// visit may be nil, where only the totals are wanted.
//
// r is UTF-8; NUL and invalid UTF-8 are matched as regexp does (an invalid byte is U+FFFD). Memory is bounded whatever
// the length of a line or a match: at most 1 MiB of a line is held, 4 MiB of a text with Multiline.
// Where r is an [io.ReaderAt] that knows its Size ([io.SectionReader], [bytes.Reader]), read from its start, all of it
// is searched; and where its Outer, as [io.SectionReader] has one, is a file that [mapped.Of] takes, what cannot match is not read.
// Any other reader is searched whole too, but for Multiline only as far as its first 4 MiB: Totals.Short.
//
// ctx is looked at often enough to end within a tenth of a second or so; its error is returned with the totals so far.
func (m *Matcher) Scan(ctx context.Context, r io.Reader, o Options, visit func(Line) error) (Totals, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if m.multi && o.Invert {
		return Totals{}, errors.New("invert and multiline do not go together")
	}
	t := teller{o: o, visit: visit, quiet: visit == nil}
	var err error
	if m.multi {
		err = m.scanText(ctx, r, &t)
	} else {
		err = m.scanLines(ctx, r, &t)
	}
	if errors.Is(err, Stop) {
		err = nil
	}
	return t.totals, err
}

// Find says whether one line (without its line end) matches, and the bytes [start, end) of its first match.
// A line that holds line ends is matched as one text.
func (m *Matcher) Find(ctx context.Context, line []byte) (start, end int, ok bool, err error) {
	return m.find(ctx, line)
}

// teller hands lines to the visitor and counts.
type teller struct {
	o      Options
	visit  func(Line) error
	quiet  bool
	told   int64 // number of the last line told
	after  int   // lines of context still due
	totals Totals
}

// match counts a match and tells it.
func (t *teller) match(l Line) error {
	t.totals.Matches++
	if t.quiet {
		return nil
	}
	l.Match = true
	t.after = t.o.After
	return t.tell(l)
}

func (t *teller) tell(l Line) error {
	if t.quiet {
		return nil
	}
	t.told = l.End
	err := t.visit(l)
	if errors.Is(err, Quiet) {
		t.quiet, t.after, err = true, 0, nil
	}
	return err
}

// before is how many lines of context are due before line number n.
func (t *teller) before(n int64) int64 {
	if t.quiet {
		return 0
	}
	return min(int64(t.o.Before), n-1-t.told)
}
