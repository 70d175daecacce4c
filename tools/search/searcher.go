package search

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"golang.org/x/text/unicode/norm"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// searchArgs are the arguments of search. Every conversation pays for the words of the jsonschema tags.
type searchArgs struct {
	Pattern    tools.Queries `json:"pattern" jsonschema:"RE2; several: counts" help:"Regular expression (RE2 syntax) to search for; or several, an array or an object by name: then the answer has the matches and files of each, and show, context and limit are not taken."`
	Path       string        `json:"path,omitempty" help:"File or directory to search, obs:ID, or obs: for all stored observations. Default: all roots."`
	Glob       tools.Strings `json:"glob,omitempty" jsonschema:"!p excludes" help:"Search only files that match this glob, such as **/*.go, or one of several. A pattern that begins with ! excludes. Default: **."`
	Literal    bool          `json:"literal,omitempty" help:"Search for the pattern as plain text, not as a regular expression. Default: false."`
	IgnoreCase bool          `json:"ignore_case,omitempty" help:"Ignore the case of letters. Default: false."`
	Multiline  bool          `json:"multiline,omitempty" help:"Let a match span several lines. Default: false."`
	Context    int           `json:"context,omitempty" range:"0,20" help:"Lines to show before and after each match. Default: 0."`
	Show       string        `json:"show,omitempty" enum:"matches|files|counts|dirs|groups" help:"What to print: matches (matching lines), files (names of files with a match), counts (matching lines of each file), dirs (of each directory), or groups (how often each captured group, or matched text, occurs; most frequent first). Default: matches."`
	Limit      int64         `json:"limit,omitempty" range:"0," help:"Maximum number of rows to print; the totals count all. 0: all. Default: 0."`
	Archives   bool          `json:"archives,omitempty" help:"Search the members of archives (zip, tar, tar.gz …) that are met too; of one named by path they always are. Default: false."`
	All        bool          `json:"all,omitempty" jsonschema:"hidden, ignored too" help:"Include hidden and ignored files. Default: false."`
}

// Check implements [tools.Checker].
func (a searchArgs) Check() error {
	_, _, err := a.compile()
	return err
}

// compile compiles the patterns and the glob; a nil glob matches everything.
func (a searchArgs) compile() (all []*linesearch.Matcher, glob *tree.Glob, err error) {
	if err := checkGroups(a.Show, false, a.Context); err != nil {
		return nil, nil, err
	}
	if a.Pattern.Several && (a.Show != "" || a.Context > 0 || a.Limit > 0) {
		return nil, nil, errors.New("several patterns are only counted: leave out show, context and limit, or give one pattern")
	}
	for i, expr := range a.Pattern.Texts {
		p := linesearch.Pattern{Expr: expr, Literal: a.Literal, IgnoreCase: a.IgnoreCase, Multiline: a.Multiline}
		m, err := compilePattern(p, "set multiline")
		if err != nil && a.Pattern.Several {
			err = fmt.Errorf("pattern %s: %w", a.Pattern.Names[i], err)
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, m)
	}
	glob, err = tree.CompileGlobs(a.Glob)
	return all, glob, err
}

// compilePattern compiles a pattern. Its error says what to do: acrossLines if the pattern matches line ends, else how
// to search for it as plain text, if that is possible.
func compilePattern(p linesearch.Pattern, acrossLines string) (*linesearch.Matcher, error) {
	m, err := linesearch.Compile(anyForm(p))
	switch {
	case errors.Is(err, linesearch.ErrLineEnd):
		return nil, fmt.Errorf("%w; %s", err, acrossLines)
	case err != nil && !p.Literal && len(p.Expr) <= linesearch.MaxProgram:
		return nil, fmt.Errorf("%w\nto search for it as plain text: \"literal\": true", err)
	}
	return m, err
}

// anyForm returns a pattern that matches the normal forms of Unicode alike, if it is plain text.
func anyForm(p linesearch.Pattern) linesearch.Pattern {
	composed, decomposed := regexp.QuoteMeta(norm.NFC.String(p.Expr)), regexp.QuoteMeta(norm.NFD.String(p.Expr))
	plain := p.Literal || regexp.QuoteMeta(p.Expr) == p.Expr
	if plain && composed != decomposed && len(composed) < linesearch.MaxPattern/4 {
		p.Expr, p.Literal = "(?:"+composed+"|"+decomposed+")", false
	}
	return p
}

// searcher runs one call.
type searcher struct {
	searchArgs
	all  []*linesearch.Matcher // of each pattern
	glob *tree.Glob            // nil: everything
	in   tools.Input
	out  tools.Output
	rows rows // what is printed

	contents  *semaphore.Weighted // see source.NewContents
	documents context.Context     // ends when the time for reading documents does

	oneFile            bool         // the path names one file: progress is in bytes
	fileRead, fileSize atomic.Int64 // of that file; the worker writes them

	report         tree.Report // of the walks; written by the walking goroutine, read after it has ended
	missingRoots   []string    // notes on removed roots, written and read like report
	damaged        []string    // observations that are missing or torn, written and read like report
	skippedDerived int64       // observations derived from others, which are skipped

	seen         int64 // files opened, searched or not
	searched     int64
	binary       int64
	noText       map[string]tally // documents that were not searched, by reason
	inPart       tally            // documents of which something has no text: its name, and what has none
	failed       int64
	firstError   error // error of the first file that failed
	keptInPart   int64 // observations that were kept in part
	shrunk       int64 // files that became shorter meanwhile
	letters      bool  // of some file: linesearch.Totals.Letters
	notUTF8      int64 // files with lines shown that are not UTF-8
	caveats      tally // compressed files and members that were not read whole
	cutMultiline []string
	matches      int64
	files        int64
	counts       []fileCount
	patterns     []dirCount          // of each of several patterns
	dirs         map[string]dirCount // with show=dirs, by name
	groups       groupCounts         // with show=groups
	decoded      source.Decoded      // files with matches that were decoded
	beyond       bool                // the pattern may match what a wrong encoding does not have
	doubtful     source.Decoded      // files that are perhaps in another encoding, with such a pattern

	window     *linesearch.Line // the first truncated match …
	windowFile string           // … and its file
}

// fileCount is a record of show=counts.
type fileCount struct {
	name    string
	matches int64
}
