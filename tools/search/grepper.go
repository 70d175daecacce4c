package search

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// grepArgs are the arguments of grep. Every conversation pays for the words of the jsonschema tags.
type grepArgs struct {
	Source     string `json:"source" jsonschema:"path or obs:ID" help:"File, or obs:ID."`
	Pattern    string `json:"pattern" jsonschema:"RE2" help:"Regular expression (RE2 syntax) to search for."`
	Literal    bool   `json:"literal,omitempty" help:"Search for the pattern as plain text, not as a regular expression. Default: false."`
	IgnoreCase bool   `json:"ignore_case,omitempty" help:"Ignore the case of letters. Default: false."`
	Invert     bool   `json:"invert,omitempty" help:"Show the lines that do not match. Default: false."`
	Context    int    `json:"context,omitempty" range:"0,20" help:"Lines to show before and after each match. Default: 0."`
	Show       string `json:"show,omitempty" enum:"matches|count|groups" help:"What to print: matches (matching lines), count (only their number), or groups (how often each captured group, or matched text, occurs; most frequent first). Default: matches."`
	Offset     int64  `json:"offset,omitempty" range:"0," jsonschema:"matches to skip" help:"Number of matches to skip; the call printed below a page sets it. Default: 0."`
	Limit      int64  `json:"limit,omitempty" range:"0," help:"Maximum number of matches to show; 0 shows as many as fit on a page. Default: 0."`
	Save       bool   `json:"save,omitempty" jsonschema:"as obs:" help:"Store all matches as a new observation and print its receipt. Default: false."`
}

// maxSaved is the maximum number of bytes of a JSON value that are searched, and of a line that are saved.
const maxSaved = 1 << 20

// Check implements [tools.Checker].
func (a grepArgs) Check() error {
	_, err := a.matcher()
	return err
}

func (a grepArgs) matcher() (*linesearch.Matcher, error) {
	if err := checkGroups(a.Show, a.Invert, a.Context); err != nil {
		return nil, err
	}
	p := linesearch.Pattern{Expr: a.Pattern, Literal: a.Literal, IgnoreCase: a.IgnoreCase}
	return compilePattern(p, "search with multiline matches across lines")
}

// grepper runs one call.
type grepper struct {
	grepArgs
	m    *linesearch.Matcher
	src  *source.Source
	out  tools.Output
	page tools.Page

	seen  int64 // matches so far, skipped ones too
	shown int64 // rows on the page
	full  bool

	row       []byte    // the match that is open, with its context
	first     int64     // its first line, with context
	last      int64     // its last line so far
	matchLine int64     // its own line
	rowBytes  byteRange // of the text that its lines take
	lastShown int64     // the last line of the row before it
	hasWindow bool      // some line is shown as a window

	groups   groupCounts      // with show=groups
	pointers *source.Pointers // of the lines; nil if the kind has none
}

// byteRange is a range of bytes, both ends included.
type byteRange struct{ from, to int64 }

// notSaved is the note for save=true if no matches are shown.
const notSaved = "save stores the matches that are shown; none are shown, so nothing was stored"

// reportTotals adds the totals, the notes and the next call. among names what was searched, such as "12 lines".
func (g *grepper) reportTotals(total int64, among string) error {
	g.out.Count("total_matches", float64(total))
	if g.Show == "count" {
		if g.Save {
			g.out.Note(notSaved)
		}
		return g.page.Row([]byte(content.Plural(total, "match", "matches")+" in "+among), tools.Call{})
	}
	if g.Show == "groups" {
		return g.reportGroups(total, among)
	}
	if total > 0 && g.Offset >= total {
		return fmt.Errorf("offset %d is past the last match: %s in %s", g.Offset, content.Plural(total, "match", "matches"),
			among)
	}
	g.page.SetRowRange(g.Offset, total)
	if total == 0 {
		said := "no match in "
		if g.Invert && among != "0 lines" {
			said = "every line matches, so invert leaves none: "
		}
		g.out.Note(said + among)
		if g.Save {
			g.out.Note(notSaved)
		}
	}
	if g.hasWindow {
		g.out.Note(
			"long lines are cut to the text around their match; [from-to of size] counts bytes of the line; slice shows more")
	}
	g.setNext(total)
	return nil
}

// setNext adds the next call if rows are left.
func (g *grepper) setNext(total int64) {
	if next := g.Offset + g.shown; next < total {
		a := g.grepArgs
		a.Offset, a.Save = next, false
		g.page.Next(tools.Call{Tool: "grep", Args: a})
	}
}

// reportGroups shows the groups as rows, "COUNT<tab>GROUP", and the totals.
func (g *grepper) reportGroups(lines int64, among string) error {
	all := g.groups.sorted()
	total := int64(len(all))
	g.out.Count("occurrences", float64(g.groups.occurrences))
	g.out.Count("groups", float64(total))
	if total > 0 && g.Offset >= total {
		return fmt.Errorf("offset %d is past the last of %s", g.Offset, content.Plural(total, "group", "groups"))
	}
	g.page.SetRowRange(g.Offset, total)
	for _, c := range all[min(g.Offset, total):] {
		if g.Limit > 0 && g.shown >= g.Limit {
			break
		}
		row := append(strconv.AppendInt(nil, c.n, 10), '\t')
		if err := g.addRow(append(row, c.group...), tools.Call{}); errors.Is(err, tools.ErrPageFull) {
			break
		} else if err != nil {
			return err
		}
	}
	if lines == 0 {
		g.out.Note("no match in " + among)
	} else {
		g.out.Note(content.Plural(total, "group", "groups") + ", " +
			content.Plural(g.groups.occurrences, "occurrence", "occurrences") + " in " +
			content.Plural(lines, "matching line", "matching lines") + " of " + among)
	}
	for _, note := range g.groups.notes() {
		g.out.Note(note)
	}
	if g.Save && g.shown == 0 {
		g.out.Note(notSaved)
	}
	g.setNext(total)
	return nil
}

// addRow shows a row. With save it calls Keep before the first one, so that nothing is stored without a match.
func (g *grepper) addRow(row []byte, more tools.Call) error {
	if g.Save && g.shown == 0 {
		g.out.Keep(g.src.Name)
	}
	if err := g.page.Row(row, more); err != nil {
		return err
	}
	g.shown++
	return nil
}

func (g *grepper) progress(done int64) { g.out.Progress(done, g.src.Extent(), "bytes read") }

// openText returns a reader of the whole text that reports progress.
func (g *grepper) openText() (io.Reader, error) {
	r, err := g.src.Text()
	if err != nil {
		return nil, err
	}
	return &progressReader{r: r, g: g}, nil
}

type progressReader struct {
	r    io.Reader
	g    *grepper
	done int64
}

func (p *progressReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.done += int64(n)
	p.g.progress(p.done)
	return n, err
}
