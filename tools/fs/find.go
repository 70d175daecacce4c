package fs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// findArgs are the arguments of find. Every word here is paid for in every conversation.
type findArgs struct {
	Glob   string `json:"glob,omitempty" jsonschema:"default **" help:"Names to list, as in **/*.go or *.{md,txt}; ** is everything. Default: **."`
	Path   string `json:"path,omitempty" jsonschema:"directory, or obs:" help:"Directory to look into, one file, or obs: for what was kept. Default: all roots."`
	Type   string `json:"type,omitempty" enum:"file|dir|link" help:"Only entries of this type. Default: every type."`
	Show   string `json:"show,omitempty" enum:"list|tree|count|stat" jsonschema:"stat adds lines, kind, tokens; count is by extension" help:"What to print: list is a record for each entry with size and time, tree is indented names, count is files and bytes by extension, stat is list with lines, kind and tokens of each file. Default: list."`
	Sort   string `json:"sort,omitempty" enum:"path|modified|size" jsonschema:"newest, largest first" help:"Order: by path, the newest first (modified) or the largest first (size). Default: path."`
	Limit  int64  `json:"limit,omitempty" range:"0," help:"Show at most so many. Default: 0, all."`
	Depth  int64  `json:"depth,omitempty" range:"0," help:"Go at most so many directories deep. Default: 0, all the way."`
	Newer  string `json:"newer,omitempty" jsonschema:"24h, 7d, RFC 3339" help:"Only what was changed since: so long ago (90m, 24h, 7d, 2w) or a time (2026-01-31, RFC 3339). Default: any time."`
	Larger string `json:"larger,omitempty" jsonschema:"10KB, 1MB" help:"Only files of more than this: 500, 10KB, 1.5MB, 1GiB. Default: any size."`
	All    bool   `json:"all,omitempty" jsonschema:"hidden and ignored too" help:"Hidden and ignored entries too. Default: false."`
}

// Find is the tool.
func Find() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "find",
		Title:       "Find files",
		Description: "List files and directories, or kept observations (path obs:); long lists are kept as NDJSON.",
		Effect:      tools.ReadOnly,
	}, find)
}

// found is one thing found.
type found struct {
	Path     string // as the caller should name it
	Type     tree.Type
	Size     int64
	Modified time.Time

	seen *observations.Observation // of an observation
}

// findQuery is what is asked for, understood.
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
	if q.Glob != "" && q.Glob != "**" {
		if q.glob, err = tree.CompileGlob(q.Glob); err != nil {
			return q, err
		}
	}
	if q.newer, err = parseWhen(q.Newer, now); err != nil {
		return q, err
	}
	if q.larger, err = parseSize(q.Larger); err != nil {
		return q, err
	}
	if q.Sort != "" && q.Sort != "path" && (q.Show == "tree" || q.Show == "count") {
		return q, fmt.Errorf("sort %s does not go with show %s; use show list", q.Sort, q.Show)
	}
	return q, nil
}

// Check implements [tools.Checker].
func (a findArgs) Check() error {
	_, err := newFindQuery(a, time.Now())
	return err
}

// described says that size and time are wanted.
func (q *findQuery) described() bool {
	return q.Show != "tree" || !q.newer.IsZero() || q.Larger != ""
}

func find(ctx context.Context, a findArgs, in tools.Input, out tools.Output) error {
	q, err := newFindQuery(a, time.Now())
	if err != nil {
		return err
	}
	places, err := in.Sources.Places(ctx, a.Path)
	if err != nil {
		return err
	}
	f := &finder{findQuery: q, in: in, out: out}
	if f.show, err = f.shower(ctx, places); err != nil {
		return err
	}
	if s, ok := f.show.(*ordered); ok {
		defer s.release()
	}
	err = f.everywhere(ctx, places)
	if err == nil || errors.Is(err, tree.SkipAll) {
		err = f.show.end()
	}
	switch {
	case err != nil && ctx.Err() != nil && f.listed() > 0 && f.Show != "count":
		f.out.Note("it stopped after " + plural(f.listed(), "entry", "entries") + "; " + narrower)
		return err
	case err != nil && ctx.Err() != nil:
		f.out.Note("it stopped before anything could be shown; " + narrower)
		return err
	case err != nil:
		return err
	}
	f.tell()
	return nil
}

// narrower is what helps where the time was not enough.
const narrower = "narrow it by path, glob, depth, newer or larger"

// finder is one call.
type finder struct {
	findQuery
	in   tools.Input
	out  tools.Output
	show shower

	report tree.Report
	shown  byType
	taken  int64 // shown or held to be shown
	more   bool  // the limit ended it before all was seen
	failed int64 // files that could not be read for stat
	partly int64 // observations shown that are kept in part
	old    int64 // of the type, but not newer
	small  int64 // of the type and newer, but not larger, or not files
	other  int64 // of another type
}

// byType counts entries of each type.
type byType [4]int64

func (n *byType) of(t tree.Type) *int64 {
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

// everywhere looks into each place in turn.
func (f *finder) everywhere(ctx context.Context, places []tools.Place) error {
	survey := tools.Survey{Left: len(places), Tell: f.out.Note}
	for _, p := range places {
		var err error
		switch {
		case p.Observations:
			err = f.observed(ctx)
		case p.ID != "":
			err = f.oneObserved(ctx, p.ID)
		case p.IsDir:
			err = f.walk(ctx, p)
		default:
			err = f.one(p)
		}
		if err := survey.Looked(p, err); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) walk(ctx context.Context, p tools.Place) error {
	before := f.report
	report, err := p.Root.Walk(ctx, tree.Options{
		Start: p.Path, Glob: f.glob, All: f.All, Depth: int(min(f.Depth, 1<<30)), Stat: f.described(), Ahead: true,
		Progress: func(r tree.Report) {
			n := before.Files + r.Files
			f.out.Progress(n, 0, fmt.Sprintf("%d files walked", n))
		},
	}, func(e tree.Entry) error {
		if e.Type == tree.Dir {
			e.Size = 0 // what a file system says there differs from one to the next, and means nothing
		}
		return f.take(found{Path: p.Shown(e.Path), Type: e.Type, Size: e.Size, Modified: e.Modified})
	})
	f.report = sum(before, report)
	if err == nil && f.more {
		err = tree.SkipAll // in the next places too
	}
	return err
}

// sum is the report of two walks.
func sum(a, b tree.Report) tree.Report {
	return tree.Report{
		Dirs: a.Dirs + b.Dirs, Files: a.Files + b.Files, Ignored: a.Ignored + b.Ignored,
		Unreadable: a.Unreadable + b.Unreadable, CutRules: a.CutRules + b.CutRules,
	}
}

// one is a place that is no directory.
func (f *finder) one(p tools.Place) error {
	at, err := p.Root.Stat(p.Path)
	if err != nil {
		return err
	}
	f.report.Files++
	if f.glob != nil && !f.glob.Match(p.Path[strings.LastIndexByte(p.Path, '/')+1:]) {
		return nil
	}
	typ := tree.File
	if !at.Mode().IsRegular() {
		typ = tree.Other
	}
	return f.take(found{Path: p.Shown(p.Path), Type: typ, Size: at.Size(), Modified: at.ModTime()})
}

// take hands on what passes; tree.SkipAll where the limit is reached and what follows cannot matter.
func (f *finder) take(e found) error {
	switch {
	case f.Type != "" && string(e.Type) != f.Type:
		f.other++
		return nil
	case !f.newer.IsZero() && !e.Modified.After(f.newer):
		f.old++
		return nil
	case f.Larger != "" && (e.Type != tree.File || e.Size <= f.larger):
		f.small++
		return nil
	}
	if f.Limit > 0 && f.taken == f.Limit && f.show.inOrder() {
		f.more = true
		return tree.SkipAll
	}
	f.taken++
	return f.show.take(e)
}

// listed is how much was shown.
func (f *finder) listed() (n int64) {
	for _, k := range f.shown {
		n += k
	}
	return n
}

// tell says what was found and what was passed over.
func (f *finder) tell() {
	n := f.listed()
	for _, t := range []tree.Type{tree.File, tree.Dir, tree.Link, tree.Other} {
		if n := *f.shown.of(t); n > 0 || t == tree.File {
			f.out.Count(string(t)+"s_found", float64(n))
		}
	}
	switch {
	case f.more:
		f.out.Note(fmt.Sprintf("the first %d; there are more: raise limit", f.Limit))
	case n < f.taken && n == f.Limit && n < maxSorted:
		f.out.Note(fmt.Sprintf("%d of %d; raise limit for more", n, f.taken))
	case n < f.taken:
		f.out.Note(fmt.Sprintf("the first %d of %d in this order, which is as many as are put in order: narrow it with glob, newer or larger", n, f.taken))
	case n == 0:
		f.out.Note(f.nothing())
	}
	if left := f.leftOut(); n > 0 && left != "" && !f.more { // where the limit ended the walk it is not known how many
		f.out.Note(left)
	}
	if f.failed > 0 {
		f.out.Note(plural(f.failed, "file", "files") + " could not be read; the records say why")
	}
	if f.partly > 0 {
		f.out.Note(plural(f.partly, "observation is", "observations are") + " kept in part, without the bytes dropped: size is of what is kept, all other counts are of the whole")
	}
	tellWalk(f.report, f.out)
}

// tellWalk says what a walk could not look at.
func tellWalk(r tree.Report, out tools.Output) {
	if r.Unreadable > 0 {
		out.Note(plural(r.Unreadable, "directory", "directories") + " could not be read")
	}
	if r.CutRules > 0 {
		out.Note(plural(r.CutRules, "ignore file is", "ignore files are") + " too large: applied in part")
	}
}

// nothing says why nothing was found, as far as that is known.
func (f *finder) nothing() string {
	said := "no match among " + plural(f.report.Files, "file", "files")
	if f.report.Dirs > 0 {
		said += " and " + plural(f.report.Dirs, "directory", "directories")
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
	add(f.other, "of another type")
	add(f.old, "not newer than "+content.ClipBytes(f.Newer, 40))
	add(f.small, "not larger than "+content.ClipBytes(f.Larger, 40))
	if left := f.leftOut(); left != "" {
		why = append(why, left)
	}
	if len(why) == 0 {
		return said
	}
	return said + "; " + strings.Join(why, "; ")
}

// leftOut says how much was passed over as hidden or ignored, whatever it is and whatever is in it; "" where nothing was.
func (f *finder) leftOut() string {
	if f.report.Ignored == 0 {
		return ""
	}
	return plural(f.report.Ignored, "ignored or hidden entry was", "ignored or hidden entries were") + " not looked at: all=true looks there too"
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
