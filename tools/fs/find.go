package fs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// findArgs are the arguments of find. Every conversation pays for the words of the jsonschema tags.
type findArgs struct {
	Glob   tools.Strings `json:"glob,omitempty" jsonschema:"default **; !p excludes" help:"Glob of the names to list, such as **/*.go or *.{md,txt}, or several; a pattern that begins with ! excludes. Default: **."`
	Path   string        `json:"path,omitempty" jsonschema:"directory, or obs:" help:"Directory or file to list, or obs: for stored observations. Default: all roots."`
	Type   string        `json:"type,omitempty" enum:"file|dir|link" help:"List only entries of this type. Default: every type."`
	Show   string        `json:"show,omitempty" enum:"list|kinds|tree|count|stat" jsonschema:"kinds: first look at unknown files; stat adds tokens" help:"Output format: list prints one record per entry with size and time; tree prints indented names; count prints files and bytes per extension; stat prints the records of list with lines, kind and tokens of each file; kinds prints a record for each form of files, with kind, number of records, shape with example values, times and encoding: the first call for unknown files. Default: list."`
	Sort   string        `json:"sort,omitempty" enum:"path|modified|size" jsonschema:"newest or largest first" help:"Sort order: by path, newest first (modified) or largest first (size). Default: path."`
	Limit  int64         `json:"limit,omitempty" range:"0," help:"Maximum number of entries to show; 0 shows all. Default: 0."`
	Offset int64         `json:"offset,omitempty" range:"0," help:"Rows of the list of obs: to skip; the call printed above a page sets it. Default: 0."`
	Depth  int64         `json:"depth,omitempty" range:"0," help:"Maximum number of directory levels to descend; 0 is unlimited. Default: 0."`
	Newer  string        `json:"newer,omitempty" jsonschema:"24h, 7d, RFC 3339" help:"List only entries modified within an age (90m, 24h, 7d, 2w) or after a time (2026-01-31, RFC 3339). Default: any time."`
	Larger string        `json:"larger,omitempty" jsonschema:"10KB, 1MB" help:"List only files larger than this size: 500, 10KB, 1.5MB, 1GiB. Default: any size."`
	All    bool          `json:"all,omitempty" jsonschema:"hidden, ignored too" help:"Include hidden and ignored entries. Default: false."`
}

// Find returns the tool find.
func Find() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "find",
		Title:       "Find files",
		Description: "List files, directories, or observations (path obs:).",
		Effect:      tools.ReadOnly,
	}, find)
}

// foundEntry is an entry that a walk visits.
type foundEntry struct {
	Path     string // as the caller should name it
	Type     tree.Type
	Size     int64
	Modified time.Time

	observation *observations.Observation // nil for other entries
	entry       *source.Entry             // for show=stat in path order; the writer releases it
}

// findQuery is the parsed arguments.
type findQuery struct {
	findArgs
	glob   *tree.Glob // nil: everything
	newer  time.Time
	larger int64
}

func newFindQuery(a findArgs, now time.Time) (q findQuery, err error) {
	q.findArgs = a
	if q.Show == "" {
		q.Show = "list"
	}
	if len(q.Glob) > 0 {
		if q.glob, err = tree.CompileGlobs(q.Glob); err != nil {
			return q, err
		}
	}
	if q.newer, err = parseWhen(q.Newer, now); err != nil {
		return q, err
	}
	if q.larger, err = parseSize(q.Larger); err != nil {
		return q, err
	}
	if q.Sort != "" && q.Sort != "path" && (q.Show == "tree" || q.Show == "count" || q.Show == "kinds") {
		return q, fmt.Errorf("sort %s does not go with show %s; use show list", q.Sort, q.Show)
	}
	return q, nil
}

// Check implements [tools.Checker].
func (a findArgs) Check() error {
	_, err := newFindQuery(a, time.Now())
	return err
}

// needsStat reports whether the walk must read size and time of each entry.
func (q *findQuery) needsStat() bool {
	return q.Show != "tree" || !q.newer.IsZero() || q.Larger != ""
}

func find(ctx context.Context, a findArgs, in tools.Input, out tools.Output) error {
	q, err := newFindQuery(a, time.Now())
	if err != nil {
		return err
	}
	locations, err := in.Sources.Locate(ctx, a.Path)
	if err != nil {
		return err
	}
	f := &finder{findQuery: q, in: in, out: out}
	switch {
	case q.Show == "kinds":
		f.page = out.Page()
	case observations.IsName(a.Path) && q.Show != "count": // a page is not stored: such lists would fill the store
		f.page = out.Page()
		if f.Limit > 0 {
			f.Limit += f.Offset // rows before the page count too
		}
	case f.Offset > 0:
		return errors.New("offset counts rows of the list of obs:; narrow other lists by path, glob, depth, newer or larger")
	}
	f.writer = f.newWriter(ctx, locations)
	if s, ok := f.writer.(*sortedWriter); ok {
		defer s.release()
	}
	if f.stats != nil {
		defer f.stats.release()
	}
	err = f.list(ctx, locations)
	if err == nil || errors.Is(err, tree.SkipAll) {
		err = f.writer.finish()
	}
	switch {
	case err != nil && ctx.Err() != nil && f.listed() > 0 && f.Show != "count":
		f.out.Note("find stopped after " + content.Plural(f.listed(), "entry", "entries") + "; " + narrowHint)
		return err
	case err != nil && ctx.Err() != nil:
		f.out.Note("find stopped before it could show an entry; " + narrowHint)
		return err
	case err != nil:
		return err
	}
	f.reportTotals()
	f.endPage()
	return nil
}

// write writes lines to the output, or as rows to the page.
func (f *finder) write(b []byte) error {
	if f.page == nil {
		_, err := f.out.Write(b)
		return err
	}
	for line := range bytes.Lines(b) {
		if f.rows++; f.rows <= f.Offset || f.nextRow > 0 {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if f.rows == f.Offset+1 && f.heading != "" {
			line = append([]byte(f.heading+"\n"), line...)
		}
		if err := f.page.Row(line, tools.Call{}); errors.Is(err, tools.ErrPageFull) {
			f.nextRow = f.rows
		} else if err != nil {
			return err
		}
	}
	return nil
}

// endPage sets the range of the page, and the call for the next one.
func (f *finder) endPage() {
	if f.page == nil {
		return
	}
	if f.rows > 0 && f.Offset >= f.rows {
		f.out.Note(fmt.Sprintf("offset %d is past the last of %s", f.Offset, content.Plural(f.rows, "row", "rows")))
	}
	f.page.SetRowRange(f.Offset, f.rows)
	if f.nextRow > 0 {
		a := f.findArgs
		a.Offset = f.nextRow - 1
		a.Limit = max(a.Limit-a.Offset, 0)
		f.page.Next(tools.Call{Tool: "find", Args: a})
	}
}

// narrowHint is the advice after a timeout.
const narrowHint = "narrow it by path, glob, depth, newer or larger"

// finder is one call.
type finder struct {
	findQuery
	in     tools.Input
	out    tools.Output
	page   tools.Page // nil: the output is not a page
	writer entryWriter
	stats  *statWriter // set for show=stat

	report       tree.Report
	shown        byType
	accepted     int64 // entries that match, whether shown, sorted or dropped
	limitReached bool  // the limit ended the walk early
	unreadable   int64 // files that could not be read for show=stat
	keptInPart   int64 // observations shown that are kept in part
	notNewer     int64 // of the right type, but not newer
	notLarger    int64 // of the right type and newer, but not larger, or not files
	otherType    int64 // of another type

	heading string // above the first row of a page
	rows    int64  // of the output, shown or not
	nextRow int64  // the first that the page did not take, from 1; 0: none
}

// byType counts entries of each type.
type byType [4]int64

func (n *byType) counter(t tree.Type) *int64 {
	switch t {
	case tree.Dir:
		return &n[1]
	case tree.Link:
		return &n[2]
	case tree.Other:
		return &n[3]
	}
	return &n[0]
}

// list lists the locations in order.
func (f *finder) list(ctx context.Context, locations []source.Location) error {
	missing := f.in.Sources.CheckRoots(locations, f.out.Note)
	for _, l := range locations {
		if err := missing.Check(l, f.listOne(ctx, l)); err != nil {
			return err
		}
	}
	return nil
}

// listOne lists one location. It returns tree.SkipAll if the limit was reached, so that no further location matters.
func (f *finder) listOne(ctx context.Context, l source.Location) error {
	before := f.report
	o := source.ListOptions{
		Newest: f.Sort != "path", Note: f.out.Note,
		Walk: tree.Options{
			Glob: f.glob, All: f.All, Depth: int(min(f.Depth, 1<<30)), Stat: f.needsStat(), Type: tree.Type(f.Type), Ahead: true,
			Progress: func(r tree.Report) {
				n := before.Files + r.Files
				f.out.Progress(n, 0, fmt.Sprintf("%d files walked", n))
			},
		},
	}
	if f.Show == "stat" && f.writer.streams() {
		o.Contents = source.NewContents()
	}
	report, err := l.List(ctx, o, func(e source.Entry) error {
		found := foundEntry{Path: e.Name(), Type: e.Type, Size: e.Size, Modified: e.Modified, observation: e.Observation}
		if o.Contents != nil {
			found.entry = &e
		}
		before := f.accepted
		err := f.addEntry(found)
		if f.accepted == before {
			e.Release()
		}
		return err
	})
	f.report = source.SumReports(before, report)
	if err == nil && f.limitReached {
		err = tree.SkipAll
	}
	return err
}

// addEntry writes an entry if it matches the query. It returns tree.SkipAll if the limit is reached and later entries
// cannot change the output.
func (f *finder) addEntry(e foundEntry) error {
	switch {
	case f.Type != "" && string(e.Type) != f.Type:
		f.otherType++
		return nil
	case !f.newer.IsZero() && !e.Modified.After(f.newer):
		f.notNewer++
		return nil
	case f.Larger != "" && (e.Type != tree.File || e.Size <= f.larger):
		f.notLarger++
		return nil
	}
	if f.Limit > 0 && f.accepted == f.Limit && f.writer.streams() {
		f.limitReached = true
		if f.page != nil { // the list of obs: is in memory: its rows are counted
			f.rows++
			return nil
		}
		return tree.SkipAll
	}
	f.accepted++
	return f.writer.writeEntry(e)
}

// listed returns the number of entries shown.
func (f *finder) listed() (n int64) {
	for _, k := range f.shown {
		n += k
	}
	return n
}

// reportTotals adds the counts and the notes on what was found and what was skipped.
func (f *finder) reportTotals() {
	n := f.listed()
	for _, t := range []tree.Type{tree.File, tree.Dir, tree.Link, tree.Other} {
		if n := *f.shown.counter(t); n > 0 || t == tree.File {
			f.out.Count(string(t)+"s_found", float64(n))
		}
	}
	switch {
	case f.limitReached && f.page != nil: // the page names the range and the total
	case f.limitReached:
		f.out.Note(fmt.Sprintf("only the first %d are shown; there are more: raise limit", f.Limit))
	case n < f.accepted && n == f.Limit && n < maxSorted:
		f.out.Note(fmt.Sprintf("%d of %d are shown; raise limit for more", n, f.accepted))
	case n < f.accepted:
		f.out.Note(fmt.Sprintf(
			"the first %d of %d in this order; no more entries can be sorted: narrow it with glob, newer or larger", n,
			f.accepted))
	case n == 0:
		f.out.Note(f.explainNoMatch())
	}
	if left := f.skippedNote(); n > 0 && left != "" && !f.limitReached { // a walk that the limit ended has not counted all
		f.out.Note(left)
	}
	if f.unreadable > 0 {
		f.out.Note(content.Plural(f.unreadable, "file", "files") + " could not be read; the records say why")
	}
	if f.keptInPart > 0 {
		f.out.Note(content.Plural(f.keptInPart, "observation is", "observations are") +
			" kept in part: size counts the kept bytes, all other counts include the dropped bytes")
	}
	reportWalk(f.report, f.out)
}

// reportWalk notes what a walk could not read.
func reportWalk(r tree.Report, out tools.Output) {
	if r.Unreadable > 0 {
		out.Note(content.Plural(r.Unreadable, "directory", "directories") + " could not be read")
	}
	if note := source.StoreNote(r); note != "" {
		out.Note(note)
	}
	if r.CutRules > 0 {
		out.Note(content.Plural(r.CutRules, "ignore file is", "ignore files are") + " too large: applied in part")
	}
}

// explainNoMatch returns the note for an empty result, with the numbers of entries that each argument excluded.
func (f *finder) explainNoMatch() string {
	said := "no match among " + content.Plural(f.report.Files, "file", "files")
	if f.report.Dirs > 0 {
		said += " and " + content.Plural(f.report.Dirs, "directory", "directories")
	}
	if f.report.Files == 0 && f.report.Dirs == 0 {
		said = "no match: the place is empty"
	}
	var why []string
	add := func(n int64, what string) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(f.otherType, "of another type")
	add(f.notNewer, "not newer than "+content.ClipBytes(f.Newer, 40))
	add(f.notLarger, "not larger than "+content.ClipBytes(f.Larger, 40))
	if left := f.skippedNote(); left != "" {
		why = append(why, left)
	}
	if len(why) == 0 {
		return said
	}
	return said + "; " + strings.Join(why, "; ")
}

// skippedNote returns the note on hidden and ignored entries that were skipped, "" if there were none. A skipped
// directory counts as one entry.
func (f *finder) skippedNote() string {
	if f.report.Ignored == 0 {
		return ""
	}
	return content.Plural(f.report.Ignored, "ignored or hidden entry was", "ignored or hidden entries were") +
		" skipped: all=true includes them"
}
