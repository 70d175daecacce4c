// Package jq runs jq programs over sources.
//
// It has the arguments of the tool, its pages and its notes; decode, plan and engine below it do the work. The
// language is gojq's. A filter runs in a worker process under a hard memory limit and the deadline of the call. Only a
// filter that plan/direct.go compiles runs in this process, on a source of at most 64 KiB. The answers are the same.
//
// Filters are parsed and compiled at every call, twice: when the arguments are checked, and when the filter runs. Each
// time takes 8 to 65 µs for usual ones, 0.2 ms for long ones (BenchmarkCompile of plan). No filter is cached between
// calls.
//
// It changes nothing, reads nothing but the source, and does not decide how much of the results is shown.
package jq

import (
	"bufio"
	"bytes"
	"context"
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
		Description: "jq on JSON, NDJSON; a table row is an object, a diff file {file, old_file, status, added, deleted, hunks}, a log line {line, time, level, text, key=value pairs}, a git commit {commit, author, date, subject, files, added, deleted}, other text {line, text}",
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, r.run)
}

// runner runs calls of the tool.
type runner struct {
	Options
	always bool // a worker for every filter, direct ones too: for tests
}

// smallText is the largest source, in bytes, on which a direct filter runs in this process; a worker for one may take
// the slot reserved for small jobs.
const smallText = 64 << 10

func (r runner) run(ctx context.Context, a args, in tools.Input, out tools.Output) error {
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	defer tools.CloseSource(src, out)
	write, err := asObjects(ctx, src, a)
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	open := opener(work, src, write)
	j := engine.Job{
		Name: src.Name, Filter: a.Filter, Args: a.Args,
		Raw: a.Raw, Slurp: a.Slurp, Text: a.Text, Offset: a.Offset, Limit: a.Limit,
	}
	p, err := j.Prepare()
	if err != nil {
		return err
	}
	var small []byte // nil: the filter runs in a worker
	if !r.always && p.Bounded() && src.Size <= smallText {
		if small, err = wholeText(open); err != nil {
			return err
		}
	}
	if a.Save {
		out.Keep(src.Name)
	}
	g := &page{out: out, args: a, size: src.Size, memory: r.Memory, next: a.Offset, enough: make(chan struct{})}
	g.whenFull = func() { g.timer = time.AfterFunc(r.CountFor, stop) }
	var o engine.Outcome
	switch {
	case small != nil:
		o, err = j.RunPlan(work, p, bytes.NewReader(small), g)
	case r.InProcess:
		var t io.Reader
		if t, err = open(); err == nil {
			o, err = j.RunPlan(work, p, t, g)
		}
	default:
		output := engine.PageOutput(r.Memory)
		if a.Save {
			output = 0
		}
		o, err = engine.RunWorker(work, j, inputOf(src, open, write == nil), r.Memory, output, g, g.enough)
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	return g.finish(ctx, src, o, err)
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
	case k == kind.Table:
		return decode.RowObjects, nil
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
	begun := bytes.HasPrefix(bytes.TrimSpace(window), []byte{'{'}) || bytes.HasPrefix(bytes.TrimSpace(window), []byte{'['})
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
