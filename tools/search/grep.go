package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/lines"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// grepArgs are the arguments of grep. Every word here is paid for in every conversation.
type grepArgs struct {
	Source     string `json:"source" jsonschema:"path or obs:ID" help:"File, or obs:ID."`
	Pattern    string `json:"pattern" jsonschema:"RE2" help:"Regular expression (RE2 syntax) that a line is to match."`
	Literal    bool   `json:"literal,omitempty" help:"Take pattern for the text itself, not a regular expression. Default: false."`
	IgnoreCase bool   `json:"ignore_case,omitempty" help:"Take capital and small letters for the same. Default: false."`
	Invert     bool   `json:"invert,omitempty" help:"Show the lines that do not match. Default: false."`
	Context    int    `json:"context,omitempty" range:"0,20" help:"Lines to show before and after each match. Default: 0."`
	Show       string `json:"show,omitempty" enum:"matches|count" help:"What to print: matches, or only their count. Default: matches."`
	Offset     int64  `json:"offset,omitempty" range:"0," jsonschema:"matches to skip" help:"Matches to skip, as the page before said. Default: 0."`
	Limit      int64  `json:"limit,omitempty" range:"0," help:"Show at most so many matches. Default: 0, as many as a page holds."`
	Save       bool   `json:"save,omitempty" jsonschema:"keep all as a new observation" help:"Keep all matches as a new observation, and print its receipt. Default: false."`
}

// Grep is the tool.
func Grep() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "grep",
		Title:       "Grep a source",
		Description: "Show the lines of one source that match, a page at a time; of one-line JSON the values, with their JSON Pointer.",
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, grep)
}

// sliceArgs are those of slice that lead from a row to what it leaves out.
type sliceArgs struct {
	Source string `json:"source"`
	Lines  string `json:"lines,omitempty"`
	Bytes  string `json:"bytes,omitempty"`
	At     string `json:"at,omitempty"`
}

// maxSaved is how much of a line, or of a JSON value, is searched as one piece and saved whole.
const maxSaved = 1 << 20

// Check implements [tools.Checker].
func (a grepArgs) Check() error {
	_, err := a.matcher()
	return err
}

func (a grepArgs) matcher() (*lines.Matcher, error) {
	m, err := lines.Compile(lines.Pattern{Expr: a.Pattern, Literal: a.Literal, IgnoreCase: a.IgnoreCase})
	if errors.Is(err, lines.ErrLineEnd) {
		return nil, fmt.Errorf("%w; search with multiline matches across lines", err)
	} else if err != nil {
		return nil, noPattern(err, a.Pattern, a.Literal)
	}
	return m, nil
}

func grep(ctx context.Context, a grepArgs, in tools.Input, out tools.Output) error {
	m, err := a.matcher()
	if err != nil {
		return err
	}
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	defer src.Done(out)
	g := &grepper{grepArgs: a, m: m, src: src, out: out}
	g.Source = src.Name
	if err := g.run(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("grep stopped before the end of %s: %w", content.ClipBytes(src.Name, 200), err)
		}
		return err
	}
	return nil
}

// grepper is one call.
type grepper struct {
	grepArgs
	m   *lines.Matcher
	src *tools.Source
	out tools.Output

	seen  int64 // matches so far, skipped ones too
	taken int64 // rows on the page
	full  bool

	row   []byte // the match that is open, with its context
	first int64  // its first line, with context
	last  int64  // its last line so far
	match int64  // its own line
	bytes span   // of the text that its lines take
	ended int64  // the last line of the row before it
	cut   bool   // some line is shown as a window
}

// span is from one byte to another, both of it.
type span struct{ from, to int64 }

func (g *grepper) run(ctx context.Context) error {
	if g.src.Encoding == content.NoText {
		g.out.Note("the source is binary: searched as bytes")
	}
	long, err := hasLongLines(ctx, g.src)
	if err != nil {
		return err
	}
	if long {
		if done, err := g.leaves(ctx); done || err != nil {
			return err
		}
	}
	r, err := g.src.Text()
	if err != nil {
		return err
	}
	o := lines.Options{Invert: g.Invert, Before: g.Context, After: g.Context, Progress: g.progress}
	if g.Save {
		o.Window = maxSaved
	}
	visit := g.line
	if g.Show == "count" {
		visit = nil
	}
	totals, err := g.m.Scan(ctx, r, o, visit)
	if err == nil && !g.full {
		err = g.flush()
	}
	if err != nil && !errors.Is(err, tools.ErrPageFull) {
		return err
	}
	return g.finish(totals.Matches, plural(totals.Lines, "line", "lines"))
}

// notSaved is said where matches were to be saved, and none are shown.
const notSaved = "save keeps the matches that are shown: there are none, so nothing was kept"

// finish tells the totals, and the way on. among is what was searched.
func (g *grepper) finish(total int64, among string) error {
	g.out.Count("total_matches", float64(total))
	if g.Show == "count" {
		if g.Save {
			g.out.Note(notSaved)
		}
		return g.out.Row([]byte(plural(total, "match", "matches")+" in "+among), tools.Call{})
	}
	if total > 0 && g.Offset >= total {
		return fmt.Errorf("offset %d is past the last of %s in %s", g.Offset, plural(total, "match", "matches"), among)
	}
	g.out.Span(g.Offset, total)
	if total == 0 {
		said := "no match in " + among
		if g.Invert {
			said = "every line matches, so that none is left: " + among
			if among == "0 lines" {
				said = "no match in " + among
			}
		}
		g.out.Note(said)
		if g.Save {
			g.out.Note(notSaved)
		}
	}
	if g.cut {
		g.out.Note("long lines are shown around their match: [from-to of size] are bytes of the line; slice shows more")
	}
	if next := g.Offset + g.taken; next < total {
		a := g.grepArgs
		a.Offset, a.Save = next, false
		g.out.Next(tools.Call{Tool: "grep", Args: a})
	}
	return nil
}

// line takes the lines that Scan tells, and makes them rows: a match with its context each.
func (g *grepper) line(l lines.Line) error {
	switch {
	case l.Match:
		if g.match > 0 {
			if err := g.flush(); err != nil {
				return g.stop(err)
			}
		}
		g.seen++
		g.match = l.Number
		g.append(l)
	case g.match > 0 && l.Number <= g.match+int64(g.Context):
		g.append(l)
	default: // before the next match
		if g.match > 0 {
			if err := g.flush(); err != nil {
				return g.stop(err)
			}
		}
		g.append(l)
	}
	return nil
}

// stop goes on counting where the page is full.
func (g *grepper) stop(err error) error {
	if errors.Is(err, tools.ErrPageFull) {
		g.full = true
		return lines.Quiet
	}
	return err
}

// append adds a line to the open row: `12: a match`, `11- context`.
func (g *grepper) append(l lines.Line) {
	if len(g.row) > 0 {
		g.row = append(g.row, '\n')
	} else {
		g.first, g.bytes.from = l.Number, l.Offset
	}
	g.last, g.bytes.to = l.Number, l.Offset+l.Size-1
	g.row = strconv.AppendInt(g.row, l.Number, 10)
	if l.Match {
		g.row = append(g.row, ": "...)
	} else {
		g.row = append(g.row, "- "...)
	}
	g.row = append(g.row, l.Text...)
	if l.Cut() > 0 {
		g.cut = true
		from := l.At
		g.row = fmt.Appendf(g.row, " [%d-%d of %d", from, from+int64(len(l.Text))-1, l.Size)
		if g.src.Plain() {
			g.row = fmt.Appendf(g.row, "; slice bytes %d-%d", l.Offset+from, l.Offset+from+int64(len(l.Text))-1)
		}
		g.row = append(g.row, ']')
	}
}

// flush hands on the open row, if it is one that is asked for.
func (g *grepper) flush() error {
	if g.match == 0 {
		return nil
	}
	row, first, last, bytes := g.row, g.first, g.last, g.bytes
	g.row, g.match = g.row[:0], 0
	ended := g.ended
	g.ended = last
	if g.seen <= g.Offset {
		return nil
	}
	if g.Limit > 0 && g.taken >= g.Limit {
		return tools.ErrPageFull
	}
	if g.Context > 0 && g.taken > 0 && first > ended+1 {
		row = append([]byte("--\n"), row...)
	}
	more := sliceArgs{Source: g.Source, Lines: fmt.Sprintf("%d-%d", first, last)}
	if g.src.Encoding == content.NoText { // to slice it has no lines
		more = sliceArgs{Source: g.Source, Bytes: fmt.Sprintf("%d-%d", bytes.from, bytes.to)}
	}
	return g.take(row, tools.Call{Tool: "slice", Args: more})
}

// take hands on a row. The first one is where it is known that there is something to keep.
func (g *grepper) take(row []byte, more tools.Call) error {
	if g.Save && g.taken == 0 {
		g.out.Keep(g.src.Name)
	}
	if err := g.out.Row(row, more); err != nil {
		return err
	}
	g.taken++
	return nil
}

func (g *grepper) progress(done int64) { g.out.Progress(done, g.src.Size, "bytes read") }

// text reads the source from its start and tells how much was read.
func (g *grepper) text() (io.Reader, error) {
	r, err := g.src.Text()
	if err != nil {
		return nil, err
	}
	return &progressing{r: r, g: g}, nil
}

type progressing struct {
	r    io.Reader
	g    *grepper
	done int64
}

func (p *progressing) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.done += int64(n)
	p.g.progress(p.done)
	return n, err
}
