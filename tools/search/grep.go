package search

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/linesearch"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Grep returns the tool grep.
func Grep() tools.Tool {
	return tools.New(tools.Tool{
		Name:        "grep",
		Opens:       tools.OpensSource,
		Title:       "Grep a source",
		Description: "Show the matching lines of one source by pages; of one-line JSON, the values with their JSON Pointer.",
		Rules:       []string{countingRule, "show=groups cannot be combined with invert or context."},
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, grep)
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
	defer tools.CloseSource(src, out)
	g := &grepper{grepArgs: a, m: m, src: src, out: out, page: out.Page()}
	g.Source = src.Name
	if err := g.run(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("grep stopped before the end of %s: %w", content.ClipBytes(src.Name, 200), err)
		}
		return err
	}
	return nil
}

func (g *grepper) run(ctx context.Context) error {
	if g.src.Encoding == content.NoText {
		g.out.Note("the source is binary: searched as bytes" + g.src.Instead())
	}
	long, err := hasLongLines(ctx, g.src)
	if err != nil {
		return err
	}
	if long {
		if done, err := g.grepJSON(ctx); done || err != nil {
			return err
		}
	}
	r, err := g.src.Text()
	if err != nil {
		return err
	}
	o := linesearch.Options{Invert: g.Invert, Before: g.Context, After: g.Context, Progress: g.progress}
	if g.Save || g.Show == "groups" {
		o.Window = maxSaved
	}
	if g.Show != "count" && g.Show != "groups" {
		if g.pointers, err = g.src.Pointers(ctx); err != nil {
			return err
		}
		defer g.pointers.Close()
	}
	visit := g.addLine
	switch g.Show {
	case "count":
		visit = nil
	case "groups":
		visit = func(l linesearch.Line) error { g.groups.addLine(g.m, l); return nil }
	}
	totals, err := g.m.Scan(ctx, r, o, visit)
	if err == nil && !g.full {
		err = g.showRow()
	}
	if err != nil && !errors.Is(err, tools.ErrPageFull) {
		return err
	}
	if totals.Letters {
		g.out.Note(linesearch.LettersNote)
	}
	if s := g.src; s.Encoding == content.UTF8 && s.Document == nil && source.BeyondASCII(g.Pattern) &&
		totals.Matches == 0 && !isUTF8(ctx, s, s.Size) {
		g.out.Note("some bytes are not UTF-8, and words of them may not be found")
	}
	return g.reportTotals(totals.Matches, content.Plural(totals.Lines, "line", "lines"))
}

// addLine collects the lines of a scan into rows: each match with its context. Once the page is full, the scan only
// counts.
func (g *grepper) addLine(l linesearch.Line) error {
	if l.Match || l.Number > g.matchLine+int64(g.Context) { // the open row has all its context
		if err := g.showRow(); errors.Is(err, tools.ErrPageFull) {
			g.full = true
			return linesearch.Quiet
		} else if err != nil {
			return err
		}
	}
	if l.Match {
		g.seen++
		g.matchLine = l.Number
	}
	g.appendLine(l)
	return nil
}

// appendLine adds a line to the current row: `12: a match`, `11- context`, `12 (page 3): a match in a document`.
func (g *grepper) appendLine(l linesearch.Line) {
	if len(g.row) > 0 {
		g.row = append(g.row, '\n')
	} else {
		g.first, g.rowBytes.from = l.Number, l.Offset
	}
	g.last, g.rowBytes.to = l.Number, l.Offset+l.Size-1
	g.row = strconv.AppendInt(g.row, l.Number, 10)
	if g.src.Document != nil && l.Match {
		if place := g.src.Document.PlaceOf(int(l.Number)); place != "" {
			g.row = append(append(append(g.row, " ("...), place...), ')')
		}
	}
	if g.pointers != nil && l.Match {
		if at := g.pointers.At(l.Number); at != "" {
			g.row = append(append(append(g.row, " ("...), content.VisibleLine(at)...), ')')
		}
	}
	if l.Match {
		g.row = append(g.row, ": "...)
	} else {
		g.row = append(g.row, "- "...)
	}
	g.row = append(g.row, l.Text...)
	if l.Cut() > 0 {
		g.hasWindow = true
		from := l.At
		g.row = fmt.Appendf(g.row, " [%d-%d of %d", from, from+int64(len(l.Text))-1, l.Size)
		if g.src.Plain() {
			g.row = fmt.Appendf(g.row, "; slice bytes %d-%d", l.Offset+from, l.Offset+from+int64(len(l.Text))-1)
		}
		g.row = append(g.row, ']')
	}
}

// showRow shows the open row, if it has a match and offset and limit do not exclude it.
func (g *grepper) showRow() error {
	if g.matchLine == 0 {
		return nil
	}
	row, first, last, bytes := g.row, g.first, g.last, g.rowBytes
	g.row, g.matchLine = g.row[:0], 0
	ended := g.lastShown
	g.lastShown = last
	if g.seen <= g.Offset {
		return nil
	}
	if g.Limit > 0 && g.shown >= g.Limit {
		return tools.ErrPageFull
	}
	if g.Context > 0 && g.shown > 0 && first > ended+1 {
		row = append([]byte("--\n"), row...)
	}
	more := tools.SliceArgs{Source: g.Source, Lines: fmt.Sprintf("%d-%d", first, last)}
	if g.src.Encoding == content.NoText { // slice takes no lines of a binary source
		more = tools.SliceArgs{Source: g.Source, Bytes: fmt.Sprintf("%d-%d", bytes.from, bytes.to)}
	}
	return g.addRow(row, tools.Call{Tool: "slice", Args: more})
}
