// Package search searches trees and sources for lines that match.
//
// How lines are found is internal/lines' business, which files there are internal/tree's; this package
// puts them together: many files at once, told in order, and what could not be searched said.
package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/lines"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// searchArgs are the arguments of search. Every word here is paid for in every conversation.
type searchArgs struct {
	Pattern    string `json:"pattern" jsonschema:"RE2" help:"Regular expression (RE2 syntax) that a line is to match."`
	Path       string `json:"path,omitempty" jsonschema:"file, directory or obs:" help:"File or directory to search, obs:ID, or obs: for all that was kept. Default: all roots."`
	Glob       string `json:"glob,omitempty" jsonschema:"**/*.go" help:"Only files of such a name, as in **/*.go. Default: **."`
	Literal    bool   `json:"literal,omitempty" help:"Take pattern for the text itself, not a regular expression. Default: false."`
	IgnoreCase bool   `json:"ignore_case,omitempty" help:"Take capital and small letters for the same. Default: false."`
	Multiline  bool   `json:"multiline,omitempty" jsonschema:"match across lines" help:"Let a match reach over line ends. Default: false."`
	Context    int    `json:"context,omitempty" range:"0,20" help:"Lines to show before and after each match. Default: 0."`
	Show       string `json:"show,omitempty" enum:"matches|files|counts" help:"What to print: matches with their lines, files that have one, or counts of matches in each. Default: matches."`
	All        bool   `json:"all,omitempty" jsonschema:"hidden and ignored too" help:"Hidden and ignored files too. Default: false."`
}

// Search is the tool.
func Search() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "search",
		Title:       "Search files",
		Description: "Search files, or kept observations (path obs:), for lines that match; long results are kept as NDJSON.",
		Effect:      tools.ReadOnly,
	}, search)
}

// Check implements [tools.Checker].
func (a searchArgs) Check() error {
	_, _, err := a.compile()
	return err
}

// compile is the pattern, and the glob: nil is everything.
func (a searchArgs) compile() (m *lines.Matcher, glob *tree.Glob, err error) {
	m, err = lines.Compile(lines.Pattern{Expr: a.Pattern, Literal: a.Literal, IgnoreCase: a.IgnoreCase, Multiline: a.Multiline})
	switch {
	case errors.Is(err, lines.ErrLineEnd):
		return nil, nil, fmt.Errorf("%w; set multiline", err)
	case err != nil:
		return nil, nil, noPattern(err, a.Pattern, a.Literal)
	case a.Glob != "" && a.Glob != "**":
		glob, err = tree.CompileGlob(a.Glob)
	}
	return m, glob, err
}

func search(ctx context.Context, a searchArgs, in tools.Input, out tools.Output) error {
	m, glob, err := a.compile()
	if err != nil {
		return err
	}
	s := &searcher{searchArgs: a, m: m, glob: glob, in: in, out: out}
	places, err := in.Sources.Places(ctx, a.Path)
	if err != nil {
		return err
	}
	err = s.run(ctx, places)
	if one := places[0]; err == nil && len(places) == 1 && !one.IsDir && !one.Observations && s.failed == 1 {
		return s.why
	}
	s.tell(ctx)
	if err != nil {
		return fmt.Errorf("search stopped after %s, %s: %w", plural(s.seen, "file", "files"), plural(s.matches, "match", "matches"), err)
	}
	return nil
}

// noPattern adds to what is wrong with a pattern how to search for it as it stands, where that would be taken.
func noPattern(err error, pattern string, literal bool) error {
	if literal || len(pattern) > lines.MaxPattern {
		return err
	}
	return fmt.Errorf("%w\nto match the text as it stands: \"literal\": true", err)
}

// searcher is one call.
type searcher struct {
	searchArgs
	m    *lines.Matcher
	glob *tree.Glob // nil: everything
	in   tools.Input
	out  tools.Output

	report  tree.Report // of the walks; written by the walking goroutine, read after it has ended
	gone    []string    // roots, likewise
	derived int64       // observations left out

	seen     int64 // files taken up
	searched int64
	binary   int64
	failed   int64
	why      error // of the first that failed
	parts    int64 // observations that were kept in part
	shrunk   int64 // files that became shorter meanwhile
	odd      int64 // files of which lines are shown that are not UTF-8
	short    []string
	matches  int64
	files    int64
	counts   []count
	decoded  tools.Decoded // of what was found

	window   *lines.Line // the first match of which a window is shown …
	windowed string      // … and its file
}

// count is a record of show=counts.
type count struct {
	name    string
	matches int64
}

// tell says what was found, what was passed over and what could not be searched.
func (s *searcher) tell(ctx context.Context) {
	s.out.Count("total_matches", float64(s.matches))
	s.out.Count("files_with_matches", float64(s.files))
	s.out.Count("files_searched", float64(s.searched))
	if s.matches == 0 {
		s.out.Note(s.nothing())
	}
	if s.window != nil {
		s.out.Note("of a line over 4 KiB only what is around its match stands here; " + s.wayOn(ctx))
	}
	if s.odd > 0 {
		s.out.Note(plural(s.odd, "file has", "files have") + ` lines here that are not UTF-8: such bytes are written \xNN`)
	}
	if s.failed > 0 {
		s.out.Note(fmt.Sprintf("%s could not be read: %s", plural(s.failed, "file", "files"), content.ClipBytes(s.why.Error(), 300)))
	}
	for _, said := range s.gone {
		s.out.Note(said)
	}
	if n := s.report.Unreadable; n > 0 {
		s.out.Note(plural(n, "directory", "directories") + " could not be read")
	}
	if s.binary > 0 {
		s.out.Note(plural(s.binary, "binary file was", "binary files were") + " not searched")
	}
	if s.parts > 0 {
		s.out.Note(plural(s.parts, "observation was", "observations were") + " kept in part: what is missing was not searched")
	}
	if s.shrunk > 0 {
		s.out.Note(plural(s.shrunk, "file", "files") + " became shorter during this call: what stands here of them is of no one time; call again")
	}
	s.decoded.TellAll(s.out)
	if s.derived > 0 {
		s.out.Note(plural(s.derived, "observation", "observations") + " made from observations left out")
	}
	if len(s.short) > 0 {
		s.out.Note("multiline went only as far as the first 4 MiB of " + content.ClipBytes(strings.Join(s.short, ", "), 200) +
			": not stored as UTF-8")
	}
	if n := s.report.CutRules; n > 0 {
		s.out.Note(plural(n, "ignore file is", "ignore files are") + " too large: applied in part")
	}
}

// wayOn is the call that shows more of the first line of which there is a window.
func (s *searcher) wayOn(ctx context.Context) string {
	src, err := s.in.Sources.Open(ctx, s.windowed)
	if err != nil { // it went meanwhile
		return "slice shows the rest"
	}
	defer func() { _ = src.Close() }()
	call := tools.Call{Tool: "slice", Args: sliceArgs{Source: s.windowed, Bytes: fmt.Sprintf("%d-", s.window.Offset+s.window.At)}}
	what := "more of it: "
	if src.Kind() == content.JSON || src.Kind() == content.NDJSON {
		if long, err := hasLongLines(ctx, src); err == nil && long {
			a := grepArgs{Source: s.windowed, Pattern: s.Pattern, Literal: s.Literal, IgnoreCase: s.IgnoreCase}
			if s.window.Size <= maxSaved || s.inValue(ctx, src, a) {
				call, what = tools.Call{Tool: "grep", Args: a}, "the values that match, by JSON Pointer: "
			}
		}
	}
	var words strings.Builder
	e := json.NewEncoder(&words)
	e.SetEscapeHTML(false)
	if err := e.Encode(call.Args); err != nil || words.Len() > 400 {
		return what + call.Tool + " at source " + content.ClipBytes(s.windowed, 200)
	}
	return what + call.Tool + " " + strings.TrimSuffix(words.String(), "\n")
}

// inValue says that grep finds a value that matches: of one over 1 MiB it searches the beginning.
func (s *searcher) inValue(ctx context.Context, src *tools.Source, a grepArgs) (found bool) {
	m, err := a.matcher()
	if err != nil {
		return false
	}
	scan := leafScan{g: &grepper{grepArgs: a, m: m, src: src, out: s.out}, ctx: ctx, quote: strings.Contains(a.Pattern, `"`)}
	_, err = scan.each(func(string, string, int, int) error {
		found = true
		return tools.ErrPageFull
	})
	return err == nil && found
}

// nothing says where nothing was found, and what might help.
func (s *searcher) nothing() string {
	said := "no match in " + plural(s.searched, "file", "files")
	if s.searched == 0 && s.seen == 0 && s.glob != nil {
		said = "no match: no file matches glob " + content.ClipBytes(s.Glob, 200)
	}
	if n := s.report.Ignored; n > 0 {
		said += fmt.Sprintf("; %d ignored or hidden: all=true", n)
	}
	return said
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
