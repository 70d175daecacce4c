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
	errorsSaid = 3    // sources whose errors, and sources whose notes, are shown; further ones are counted
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

// sayings collects the errors of sources, or the notes on them.
type sayings struct {
	said  []string
	count int
}

func (s *sayings) add(name, text string) {
	if s.count++; len(s.said) < errorsSaid {
		if !strings.Contains(text, decode.Clip(name)) {
			text = decode.Clip(name) + ": " + text
		}
		s.said = append(s.said, text)
	}
}

// lines returns the texts, and how many more there are: one or many are what is said of the others.
func (s *sayings) lines(one, many string) []string {
	if more := s.count - len(s.said); more > 0 {
		return append(s.said, "… and "+content.Plural(int64(more), one, many))
	}
	return s.said
}

// err returns the error of sources that failed; nil if none did.
func (s *sayings) err() error {
	if s.count == 0 {
		return nil
	}
	return errors.New(strings.Join(s.lines("further source failed", "further sources failed"), "\n"))
}

// runSeveral runs the filter on each source in turn, or with slurp once on the records of all. A source that fails does
// not stop the others.
func (r runner) runSeveral(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	if g.args.Save {
		g.out.Keep(names...)
	}
	if g.args.Slurp && len(names) > 1 {
		return r.runTogether(ctx, work, names, g, in)
	}
	var failed, noted sayings
	results, records, counted := int64(0), int64(0), true
	for i, name := range names {
		g.out.Progress(int64(i), int64(len(names)), fmt.Sprintf("%d of %d sources read", i, len(names)))
		o, err := r.runNamed(ctx, work, name, g, in, results, &noted)
		results += o.Results
		records += o.Records
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(badFilter)):
			return err
		case g.ended && work.Err() != nil:
			counted = false
		case err != nil:
			failed.add(name, err.Error())
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
	for _, note := range noted.lines("further note on sources", "further notes on sources") {
		g.out.Note(note)
	}
	if err := failed.err(); err != nil {
		return err
	}
	if records == 0 && total == 0 {
		g.out.Note("the sources are empty: there was nothing to run the filter on")
		return nil
	}
	g.noteNoResults(total)
	if total == 0 {
		r.explain(ctx, names, g, in)
	}
	return nil
}

// runNamed runs the filter on one of several sources, after those that gave a number of results.
func (r runner) runNamed(
	ctx, work context.Context, name string, g *page, in tools.Input, results int64, noted *sayings,
) (o engine.Outcome, err error) {
	src, err := openRecords(ctx, in, name)
	if err != nil {
		return o, err
	}
	defer tools.CloseSource(src, g.out)
	each, stop := context.WithCancel(work)
	defer stop()
	t, err := textOf(each, src, g.args)
	if err != nil {
		return o, err
	}
	o, err = r.runText(each, t, g, max(g.args.Offset-results, 0))
	for _, note := range g.remarksOn(src, o) {
		noted.add(name, note)
	}
	switch {
	case errors.As(err, new(badFilter)):
		return engine.Outcome{}, err
	case o.Compile != "":
		return engine.Outcome{}, badFilter{errors.New(o.Compile)}
	case err != nil:
		return o, g.stopped(err)
	}
	return o, errorOf(ctx, src, o)
}

// runTogether runs the filter once, on the records of all sources as one array.
func (r runner) runTogether(ctx, work context.Context, names []string, g *page, in tools.Input) error {
	var texts []text
	var failed sayings
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
			failed.add(name, err.Error())
		}
	}
	if len(texts) == 0 {
		return failed.err()
	}
	last := texts[len(texts)-1]
	all := text{name: last.name, size: g.size}
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
