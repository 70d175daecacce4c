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
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
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
		Description: "jq on JSON, NDJSON or a table (each row an object)",
		Effect:      tools.ReadOnly,
		Paged:       true,
	}, r.run)
}

// runner runs calls of the tool.
type runner struct {
	Options
	always bool // run direct filters in a worker too, for tests
}

// smallText is the size of the largest source, in bytes, on which a direct filter runs in this process. A worker for
// such a source may use the slot reserved for small jobs.
const smallText = 64 << 10

func (r runner) run(ctx context.Context, a args, in tools.Input, out tools.Output) error {
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	defer tools.CloseSource(src, out)
	if err := accepts(ctx, src, a); err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	open := opener(work, src, a)
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
		o, err = engine.RunWorker(work, j, inputOf(src, open, a), r.Memory, output, g, g.enough)
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	return g.finish(ctx, src, o, err)
}

// wholeText returns the text, nil if it is longer than smallText. The text of a table, its rows as objects, may be
// longer than the source.
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
func inputOf(src *source.Source, open func() (io.Reader, error), a args) engine.WorkerInput {
	t := engine.WorkerInput{Open: open, Small: src.Size <= smallText}
	if f, ok := src.ReaderAt.(*os.File); ok && src.Plain() && src.Size > 0 && (src.Kind() != content.Table || a.Text) {
		t.File, t.Size = f, src.Size
	}
	return t
}

// accepts returns an error for a source that is surely not JSON. Otherwise the filter would return results of the part
// before the error.
func accepts(ctx context.Context, src *source.Source, a args) error {
	if src.Kind() == content.Binary {
		return fmt.Errorf(
			`jq: %s is binary, neither JSON nor text: look into it with slice {"bytes": …}`, decode.Clip(src.Name),
		)
	}
	if a.Text || src.Kind() == content.JSON || src.Kind() == content.NDJSON || src.Kind() == content.Table ||
		src.Size == 0 {
		return nil
	}
	t, err := src.Text()
	if err != nil {
		return err
	}
	window, err := io.ReadAll(io.LimitReader(decode.WithContext(ctx, t), content.SniffSize))
	if err != nil {
		return err
	}
	wrong := decode.CheckSyntax(window)
	if wrong == nil {
		return nil
	}
	begun := bytes.HasPrefix(bytes.TrimSpace(window), []byte{'{'}) || bytes.HasPrefix(bytes.TrimSpace(window), []byte{'['})
	switch {
	case wrong.Cut && int64(len(window)) >= content.SniffSize: // only the window ends here, not the source
		return nil
	case src.Kind() == content.Text && begun && wrong.Offset > 1: // the run reports the place of the error
		return nil
	}
	way := `"text": true gives its lines as strings; grep and slice work on it too`
	return fmt.Errorf(
		"jq: %s is not JSON, but %s (byte %d: %s): %s", decode.Clip(src.Name), src.Kind(), wrong.Offset, wrong.Message, way,
	)
}

// opener returns a function that opens the text for the filter: that of the source, or the rows of a table as objects,
// one per line. The goroutine that converts rows exits when ctx is done.
func opener(ctx context.Context, src *source.Source, a args) func() (io.Reader, error) {
	if src.Kind() != content.Table || a.Text {
		return src.Text
	}
	return func() (io.Reader, error) {
		t, err := src.Text()
		if err != nil {
			return nil, err
		}
		r, w := io.Pipe()
		context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		go func() { _ = w.CloseWithError(decode.RowObjects(ctx, t, w)) }()
		return r, nil
	}
}

// Workers are the worker functions of this package, for worker.Main.
func Workers() map[string]worker.Worker {
	return map[string]worker.Worker{engine.WorkerName: engine.Worker}
}
