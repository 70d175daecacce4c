// Package search searches trees and sources for matching lines.
//
// Package text/linesearch finds the lines and system/tree the files; this package searches many files
// concurrently, writes the results in path order, and reports what it could not search.
package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Search returns the tool search.
func Search() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "search",
		Opens:       tools.OpensHits,
		Title:       "Search files",
		Description: "Search files or observations (path obs:).",
		Rules: []string{
			countingRule, "show=groups cannot be combined with context.",
			"Of documents (docx, xlsx, pptx, odt, pdf, eml …) the text is searched; place is a paragraph, cell, slide or page.",
		},
		Effect: tools.ReadOnly,
		Less:   `search with show="dirs", which counts by directory`,
	}, search)
}

func search(ctx context.Context, a searchArgs, in tools.Input, out tools.Output) error {
	all, glob, err := a.compile()
	if err != nil {
		return err
	}
	s := &searcher{searchArgs: a, all: all, glob: glob, in: in, out: out, rows: rows{to: out, limit: a.Limit}}
	s.contents, s.noText, s.dirs = source.NewContents(), map[string]tally{}, map[string]dirCount{}
	s.beyond = source.BeyondASCII(a.Pattern.Text())
	if a.Pattern.Several {
		s.patterns = make([]dirCount, len(all))
	}
	locations, err := in.Sources.Locate(ctx, a.Path)
	if err != nil {
		return err
	}
	err = s.run(ctx, locations)
	if len(s.damaged) > 0 {
		names := content.ClipBytes(strings.Join(s.damaged, ", "), 300)
		out.Note("not searched, because their files are missing or torn: " + names)
	}
	if err == nil && len(locations) == 1 && !locations[0].IsDir && s.failed == 1 {
		return s.firstError
	}
	s.reportTotals(ctx)
	if err != nil {
		return fmt.Errorf("search stopped after %s, %s: %w", content.Plural(s.seen, "file", "files"),
			content.Plural(s.matches, "match", "matches"), err)
	}
	return nil
}

// reportTotals adds the counts, then the notes.
func (s *searcher) reportTotals(ctx context.Context) {
	s.out.Count("total_matches", float64(s.matches))
	s.out.Count("files_with_matches", float64(s.files))
	s.out.Count("files_searched", float64(s.searched))
	switch s.Show {
	case "groups":
		s.out.Count("occurrences", float64(s.groups.occurrences))
		s.out.Count("groups", float64(len(s.groups.n)))
	case "dirs":
		s.out.Count("dirs_with_matches", float64(len(s.dirs)))
	}
	if s.Pattern.Several || s.Show != "" && s.Show != "matches" {
		s.out.Count("rows", float64(s.rows.count))
	}
	for _, note := range slices.Concat(s.matchNotes(ctx), s.coverageNotes()) {
		if note != "" {
			s.out.Note(note)
		}
	}
}

// matchNotes returns the notes on the matches; "" is no note.
func (s *searcher) matchNotes(ctx context.Context) (notes []string) {
	if s.Show == "groups" {
		notes = s.groups.notes()
	}
	if s.matches == 0 {
		notes = append(notes, s.explainNoMatch())
	}
	notes = append(notes, s.rows.note(s.out, s.searchArgs))
	if s.letters {
		notes = append(notes, linesearch.LettersNote)
	}
	if s.window != nil {
		notes = append(notes, "a line over 4 KiB is cut to the text around its match; "+s.continuationNote(ctx))
	}
	return notes
}

// coverageNotes returns the notes on what was not searched, or only in part; "" is no note.
func (s *searcher) coverageNotes() []string {
	var failed, cut, caveats string
	if caveats = s.caveats.first; s.caveats.n > 1 {
		caveats = fmt.Sprintf("%d files were not read whole, the first: %s", s.caveats.n, caveats)
	}
	if s.failed > 0 {
		failed = content.Plural(s.failed, "file", "files") + " could not be read: " +
			content.ClipBytes(s.firstError.Error(), 300)
	}
	if len(s.cutMultiline) > 0 {
		cut = "multiline searched only the first 4 MiB of " + content.ClipBytes(strings.Join(s.cutMultiline, ", "), 200) +
			": not stored as UTF-8"
	}
	return slices.Concat(
		[]string{
			countNote(s.notUTF8, "file has", "files have", ` lines that are not UTF-8: their invalid bytes are shown as \xNN`),
			failed,
		},
		s.missingRoots,
		[]string{
			countNote(s.report.Unreadable, "directory", "directories", " could not be read"),
			source.StoreNote(s.report),
			countNote(s.binary, "binary file was", "binary files were", " not searched"),
		},
		s.documentNotes(),
		[]string{
			countNote(s.keptInPart, "observation was", "observations were",
				" kept in part: the dropped bytes were not searched"),
			countNote(s.shrunk, "file", "files",
				" became shorter during this call: these results may mix old and new content; call again"),
			caveats,
			s.decoded.NoteAll(),
			s.doubtful.NoteDoubtful(),
			countNote(s.skippedDerived, "observation", "observations", " derived from other observations skipped"),
			cut,
			countNote(s.report.CutRules, "ignore file is", "ignore files are", " too large: applied in part"),
		},
	)
}

// countNote returns the note that n things did what predicate says, "" for n = 0.
func countNote(n int64, one, many, predicate string) string {
	if n == 0 {
		return ""
	}
	return content.Plural(n, one, many) + predicate
}

// continuationNote returns the call that shows more of the first truncated line.
func (s *searcher) continuationNote(ctx context.Context) string {
	src, err := s.in.Sources.Open(ctx, s.windowFile)
	if err != nil { // the file was removed meanwhile
		return "slice shows the rest of it"
	}
	defer func() { _ = src.Close() }()
	call := tools.Call{
		Tool: "slice", Args: tools.SliceArgs{Source: s.windowFile, Bytes: fmt.Sprintf("%d-", s.window.Offset+s.window.At)},
	}
	what := "to see more of it: "
	if src.Kind() == content.JSON || src.Kind() == content.NDJSON {
		if long, err := hasLongLines(ctx, src); err == nil && long {
			a := grepArgs{Source: s.windowFile, Pattern: s.Pattern.Text(), Literal: s.Literal, IgnoreCase: s.IgnoreCase}
			if s.window.Size <= maxSaved || s.grepFindsValue(ctx, src, a) {
				call, what = tools.Call{Tool: "grep", Args: a}, "to see the matching values by JSON Pointer: "
			}
		}
	}
	words, err := content.PlainJSON(call.Args)
	if err != nil || len(words) >= 400 {
		return what + call.Tool + " at source " + content.ClipBytes(s.windowFile, 200)
	}
	return what + call.Tool + " " + string(words)
}

// grepFindsValue reports whether grep finds a matching value; it searches only the first 1 MiB of each.
func (s *searcher) grepFindsValue(ctx context.Context, src *source.Source, a grepArgs) (found bool) {
	m, err := a.matcher()
	if err != nil {
		return false
	}
	scan := leafScan{
		g: &grepper{grepArgs: a, m: m, src: src, out: s.out}, ctx: ctx, quote: strings.Contains(a.Pattern, `"`),
	}
	_, err = scan.scan(func(string, string, int, int) error {
		found = true
		return tools.ErrPageFull
	})
	return err == nil && found
}

// explainNoMatch returns the note for an empty result: what was searched, and what might help.
func (s *searcher) explainNoMatch() string {
	said := "no match in " + content.Plural(s.searched, "file", "files")
	hidden := true
	if s.searched == 0 && s.seen == 0 && s.glob != nil {
		said = "no match: no file matches glob " + content.ClipBytes(s.glob.String(), 200)
		hidden = strings.Contains("/"+s.glob.String(), "/.")
	}
	if n := s.report.Ignored; n > 0 && hidden {
		said += "; " + content.Plural(n, "ignored or hidden entry", "ignored or hidden entries") +
			" skipped: all=true includes them"
	}
	return said
}
