package jq

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

const (
	maxSources = 1000 // sources of one call
	errorsSaid = 3    // sources whose errors are shown; further ones are counted
)

// sourceNames returns the sources that an argument names, with the files of each glob in path order. A file whose name
// has glob characters is that file.
func sourceNames(ctx context.Context, given tools.Strings, in tools.Input, out tools.Output) ([]string, error) {
	if len(given) == 0 {
		return nil, errors.New("jq: source is empty: name a file, a glob or obs:ID")
	}
	var names []string
	for _, name := range given {
		if !tree.IsGlob(name) {
			names = append(names, name)
			continue
		}
		if src, err := openRecords(ctx, in, name); err == nil {
			_ = src.Close()
			names = append(names, name)
			continue
		}
		m, err := in.Sources.Match(ctx, name, maxSources, func(r tree.Report) {
			out.Progress(r.Files, 0, fmt.Sprintf("%d files walked", r.Files))
		}, out.Note)
		switch {
		case err != nil:
			return nil, err
		case len(m.Names) == 0:
			return nil, fmt.Errorf("jq: no file matches %s", decode.Clip(name))
		case m.More:
			out.Note(fmt.Sprintf("only the first %d files that match %s are read; there are more", maxSources,
				decode.Clip(name)))
		}
		names = append(names, m.Names...)
	}
	if len(names) > maxSources {
		return nil, fmt.Errorf("jq: %d sources; one call takes at most %d", len(names), maxSources)
	}
	return names, nil
}

// failures collects the errors of sources.
type failures struct {
	said  []string
	count int
}

func (f *failures) add(name string, err error) {
	if f.count++; len(f.said) < errorsSaid {
		said := err.Error()
		if !strings.Contains(said, decode.Clip(name)) {
			said = decode.Clip(name) + ": " + said
		}
		f.said = append(f.said, said)
	}
}

func (f *failures) err() error {
	if f.count == 0 {
		return nil
	}
	if more := f.count - len(f.said); more > 0 {
		f.said = append(f.said, "… and "+content.Plural(int64(more), "further source failed", "further sources failed"))
	}
	return errors.New(strings.Join(f.said, "\n"))
}

// runSeveral runs the filter on each source in turn, or with slurp once on the records of all. A source that fails does
// not stop the others.
func (r runner) runSeveral(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	if g.args.Save {
		g.out.Keep(names...)
	}
	if g.args.Slurp {
		return r.runTogether(ctx, work, names, g, in)
	}
	var failed failures
	results, counted := int64(0), true
	for i, name := range names {
		g.out.Progress(int64(i), int64(len(names)), fmt.Sprintf("%d of %d sources read", i, len(names)))
		n, err := r.runNamed(ctx, work, name, g, in, results)
		results += n
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(badFilter)):
			return err
		case g.ended && work.Err() != nil:
			counted = false
		case err != nil:
			failed.add(name, err)
		}
		if !counted {
			break
		}
	}
	total := int64(-1)
	if counted {
		total = results
		g.out.Count("results", float64(total))
	}
	g.showRange(total)
	if err := failed.err(); err != nil {
		return err
	}
	g.noteNoResults(total)
	if total == 0 {
		r.explain(ctx, names, g, in)
	}
	return nil
}

// runNamed runs the filter on one of several sources, of which results came before. It returns how many it gave.
func (r runner) runNamed(
	ctx, work context.Context, name string, g *page, in tools.Input, results int64,
) (int64, error) {
	src, err := openRecords(ctx, in, name)
	if err != nil {
		return 0, err
	}
	defer tools.CloseSource(src, g.out)
	each, stop := context.WithCancel(work)
	defer stop()
	t, err := textOf(each, src, g.args)
	if err != nil {
		return 0, err
	}
	o, err := r.runText(each, t, g, max(g.args.Offset-results, 0))
	switch {
	case errors.As(err, new(badFilter)):
		return 0, err
	case o.Compile != "":
		return 0, badFilter{errors.New(o.Compile)}
	case err != nil:
		return o.Results, g.stopped(err)
	}
	return o.Results, errorOf(ctx, src, o)
}

// runTogether runs the filter once, on the records of all sources as one array.
func (r runner) runTogether(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	var texts []text
	var failed failures
	for _, name := range names {
		src, err := openRecords(ctx, in, name)
		if err == nil {
			defer tools.CloseSource(src, g.out)
			var t text
			if t, err = textOf(work, src, g.args); err == nil {
				texts = append(texts, t)
				g.size += t.size
			}
		}
		if err != nil {
			failed.add(name, err)
		}
	}
	if len(texts) == 0 {
		return failed.err()
	}
	last := texts[len(texts)-1]
	all := text{name: last.name, size: g.size, filter: g.args.Filter}
	all.open = func() (io.Reader, error) { return concatenated(texts) }
	all.input = engine.WorkerInput{Open: all.open, Small: all.size <= smallText}
	o, err := r.runText(work, all, g, g.args.Offset)
	for _, t := range texts {
		t.said.end(t.name, g.out)
		t.noteLetters(ctx, g)
	}
	if errors.As(err, new(badFilter)) {
		return err
	}
	err = g.finish(ctx, nil, o, err)
	return errors.Join(err, failed.err())
}

// concatenated returns a reader of the texts in a row, a newline between them.
func concatenated(texts []text) (io.Reader, error) {
	var all []io.Reader
	for _, t := range texts {
		r, err := t.open()
		if err != nil {
			return nil, err
		}
		all = append(all, r, bytes.NewReader([]byte{'\n'}))
	}
	return io.MultiReader(all...), nil
}
