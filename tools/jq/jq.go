// Package jq runs jq programs over sources.
//
// It has the arguments, pages and notes of the tool; its packages decode, plan and engine run the filter. The language
// is that of gojq. A filter runs in a worker process with a hard memory limit and the deadline of the call. Only a
// filter that plan/direct.go compiles runs in this process, on a source of at most 64 KiB. The results are the same.
//
// A filter is parsed and compiled twice in each call: when the arguments are checked, and when the filter runs. Each
// time takes 8 to 65 µs for usual filters, 0.2 ms for long ones (BenchmarkCompile of plan). No filter is cached between
// calls.
//
// The package changes no source and reads only the named one. The caller decides how many results are shown.
package jq

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/kind"
	"github.com/mcp-funnel/mcp-funnel/internal/source"
	"github.com/mcp-funnel/mcp-funnel/internal/worker"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/decode"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// JQ is the tool.
func JQ(o Options) tools.Tool {
	if o.CountFor <= 0 {
		o.CountFor = 2 * time.Second
	}
	if o.Memory <= 0 {
		o.Memory = worker.DefaultMemory
	}
	o.Memory = max(o.Memory, worker.MinMemory)
	return newTool(runner{Options: o})
}

func newTool(r runner) tools.Tool {
	return tools.New(tools.Tool{
		Name:        "jq",
		Title:       "Query JSON",
		Description: "jq on JSON, NDJSON; a table row is an object, a diff file {file, old_file, status, added, deleted, hunks}, a log line {line, time, level (lower case), source, text, key=value pairs}, a git commit {commit, author, date, subject, files, added, deleted}, other text {line, text}",
		Rules:       rules(),
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, r.run)
}

// rules are what the help says of the language and of the records of each kind.
func rules() []string {
	all := []string{
		"The keys of objects come out sorted. " + noLookaround,
		"The filter runs on each record in turn, with slurp on all as one array. A record is:",
	}
	for _, k := range kind.All {
		if k != kind.Binary {
			line := "  " + string(k.Name) + ": " + k.RecordIs
			if k.RecordNote != "" {
				line += "; " + k.RecordNote
			}
			all = append(all, line)
		}
	}
	return all
}

// noLookaround says how the regular expressions of this jq differ from those of others.
const noLookaround = "Regular expressions are RE2, without look-ahead, look-behind and back-references: " +
	`to divide a text before a string use split("\n…") instead.`

// runner runs calls of the tool.
type runner struct {
	Options
	always bool // run direct filters in a worker too, for tests
}

// smallText is the size of the largest source, in bytes, on which a direct filter runs in this process. A worker for
// such a source may use the slot reserved for small jobs.
const smallText = 64 << 10

func (r runner) run(ctx context.Context, a args, in tools.Input, out tools.Output) error {
	names, err := sourceNames(ctx, a.Source, in, out)
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	g := &page{out: out, args: a, memory: r.Memory, next: a.Offset, enough: make(chan struct{})}
	g.whenFull = func() { g.timer = time.AfterFunc(r.CountFor, stop) }
	defer func() {
		if g.timer != nil {
			g.timer.Stop()
		}
	}()
	if len(names) > 1 {
		return r.runSeveral(ctx, work, names, g, in)
	}
	src, err := openRecords(ctx, in, names[0])
	if err != nil {
		return err
	}
	defer tools.CloseSource(src, out)
	t, err := textOf(work, src, a)
	if err != nil {
		return err
	}
	if a.Save {
		out.Keep(src.Name)
	}
	g.size = src.Size
	o, err := r.runText(work, t, g, a.Offset)
	if err != nil && errors.As(err, new(badFilter)) {
		return err
	}
	return g.finish(ctx, src, o, err)
}

// openRecords opens a source whose records are read: of a command's output, standard output alone.
func openRecords(ctx context.Context, in tools.Input, name string) (*source.Source, error) {
	src, err := in.Sources.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return src.StandardOutput(), nil
}

// text is what a filter runs on: a source, its records as objects, or several of these in a row.
type text struct {
	name  string
	size  int64 // bytes of the source
	open  func() (io.Reader, error)
	input engine.WorkerInput
}

// textOf returns the text of a source. Its goroutine exits when ctx is done.
func textOf(ctx context.Context, src *source.Source, a args) (text, error) {
	write, err := asObjects(ctx, src, a)
	if err != nil {
		return text{}, err
	}
	open := opener(ctx, src, write)
	return text{src.Name, src.Size, open, inputOf(src, open, write == nil)}, nil
}

// badFilter is the error of a filter that does not compile.
type badFilter struct{ error }

func (e badFilter) Unwrap() error { return e.error }

// runText runs the filter of the call on a text and shows the results after the first offset ones.
func (r runner) runText(ctx context.Context, t text, g *page, offset int64) (o engine.Outcome, err error) {
	a := g.args
	j := engine.Job{
		Name: t.name, Filter: a.Filter, Args: a.Args, Raw: a.Raw, Slurp: a.Slurp, Text: a.Text,
		Offset: offset, Limit: a.Limit,
	}
	p, err := j.Prepare()
	if err != nil {
		return o, badFilter{err}
	}
	if !r.always && p.Bounded() && t.size <= smallText {
		small, err := wholeText(t.open)
		if err != nil {
			return o, err
		}
		if small != nil {
			return j.RunPlan(ctx, p, bytes.NewReader(small), g)
		}
	}
	if r.InProcess {
		from, err := t.open()
		if err != nil {
			return o, err
		}
		return j.RunPlan(ctx, p, from, g)
	}
	output := engine.PageOutput(r.Memory)
	if a.Save {
		output = 0
	}
	return engine.RunWorker(ctx, j, t.input, r.Memory, output, g, g.enough)
}

// wholeText returns the text, nil if it is longer than smallText: the objects of a table are longer than its file.
func wholeText(open func() (io.Reader, error)) ([]byte, error) {
	t, err := open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(t, smallText+1))
	if err != nil || len(b) > smallText {
		return nil, err
	}
	return b, nil
}

// inputOf returns the source for a worker: the open file if its bytes are the text, else a stream.
func inputOf(src *source.Source, open func() (io.Reader, error), itself bool) engine.WorkerInput {
	t := engine.WorkerInput{Open: open, Small: src.Size <= smallText}
	if f, ok := src.ReaderAt.(*os.File); ok && itself && src.Plain() && src.Size > 0 {
		t.File, t.Size = f, src.Size
	}
	return t
}

// asObjects returns the writer of the source's records as objects, nil if the filter reads the text itself: JSON,
// NDJSON, and a text that begins like JSON, so that the filter's error says where it is broken.
func asObjects(ctx context.Context, src *source.Source, a args) (objects, error) {
	k := kind.Of(src.Kind())
	switch {
	case a.Text || src.Size == 0 || k == kind.JSON || k == kind.NDJSON:
		return nil, nil
	case k == kind.Binary:
		return nil, fmt.Errorf(
			`jq: %s is binary, neither JSON nor text: look into it with slice {"bytes": …}`, decode.Clip(src.Name),
		)
	case k != kind.Text:
		return k.Objects, nil
	}
	t, err := src.Text()
	if err != nil {
		return nil, err
	}
	window, err := io.ReadAll(io.LimitReader(decode.WithContext(ctx, t), content.SniffSize))
	if err != nil {
		return nil, err
	}
	wrong := decode.CheckSyntax(window)
	begun := bytes.HasPrefix(bytes.TrimSpace(window), []byte{'{'}) ||
		bytes.HasPrefix(bytes.TrimSpace(window), []byte{'['})
	if wrong == nil || wrong.Cut && int64(len(window)) >= content.SniffSize || begun && wrong.Offset > 1 {
		return nil, nil
	}
	return k.Objects, nil
}

// objects writes the records of a text as JSON objects, one a line.
type objects func(ctx context.Context, r io.Reader, w io.Writer) error

// opener returns a function that opens the text for the filter: the source's own, or its records as objects, one a
// line. Its goroutine exits when ctx is done.
func opener(ctx context.Context, src *source.Source, write objects) func() (io.Reader, error) {
	if write == nil {
		return src.Text
	}
	return func() (io.Reader, error) {
		t, err := src.Text()
		if err != nil {
			return nil, err
		}
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		go func() {
			b := bufio.NewWriterSize(w, 64<<10)
			err := write(ctx, t, b)
			if err == nil {
				err = b.Flush()
			}
			_ = w.CloseWithError(err)
		}()
		return r, nil
	}
}

// Workers are the worker functions of this package, for worker.Main.
func Workers() map[string]worker.Worker {
	return map[string]worker.Worker{engine.WorkerName: engine.Worker}
}
