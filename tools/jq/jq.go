// Package jq runs jq programs over sources.
//
// The language is gojq's. A filter that cannot be shown to be cheap runs in a
// worker process under a hard memory cap and the call's deadline; one that can,
// on a small text, runs in this process. The answers are the same. Filters are parsed and compiled at every call: that takes 8 to 65 µs for
// usual ones, 0.2 ms for long ones (BenchmarkCompile), a tenth of the smallest call, so that nothing is kept of them between calls.
//
// It changes nothing, reads nothing but the source, and does not decide how much of the results is shown.
package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/internal/child"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// Options bound what a filter may take. Zero values mean the defaults.
type Options struct {
	Memory    int64         // bytes a worker may hold: child.DefaultMemory, at least child.MinMemory
	CountFor  time.Duration // how long results are still counted when the page is full: 2 s
	InProcess bool          // never start a worker: for tests and for filters that are the operator's own; nothing bounds memory then
}

type args struct {
	Source string                     `json:"source" jsonschema:"path or obs:ID" help:"File, or obs:ID."`
	Filter string                     `json:"filter" help:"Filter in the language of jq."`
	Raw    bool                       `json:"raw,omitempty" jsonschema:"strings unquoted" help:"Print strings without quotes, as jq -r does. Default: false."`
	Slurp  bool                       `json:"slurp,omitempty" jsonschema:"all records as one array; with text all of it as one string" help:"Give all records to the filter as one array, as jq -s does; with text all of it as one string, as jq -R -s does. Default: false."`
	Text   bool                       `json:"text,omitempty" jsonschema:"lines as strings" help:"Take the source for text: each line is a string. Default: false."`
	Args   map[string]json.RawMessage `json:"args,omitempty" jsonschema:"values of $name" help:"Object of values that the filter names, $name for the key name."`
	Offset int64                      `json:"offset,omitempty" range:"0," help:"Results to skip, as the page before said. Default: 0."`
	Limit  int64                      `json:"limit,omitempty" range:"0," help:"Show at most so many results. Default: 0, as many as a page holds."`
	Save   bool                       `json:"save,omitempty" jsonschema:"keep as obs:" help:"Keep all results as a new observation, and print its receipt. Default: false."`
}

// Check implements [tools.Checker].
func (a args) Check() error {
	_, err := (&job{Filter: a.Filter, Args: a.Args, Slurp: a.Slurp, Text: a.Text}).prepare()
	return err
}

// JQ is the tool.
func JQ(o Options) tools.Tool {
	if o.CountFor <= 0 {
		o.CountFor = 2 * time.Second
	}
	if o.Memory <= 0 {
		o.Memory = child.DefaultMemory
	}
	o.Memory = max(o.Memory, child.MinMemory)
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
	always bool // a worker for every filter, also a cheap one: for tests
}

func (r runner) run(ctx context.Context, a args, in tools.Input, out tools.Output) error {
	p, err := parse(a.Filter, a.Args, "")
	if err != nil {
		return err
	}
	src, err := in.Sources.Open(ctx, a.Source)
	if err != nil {
		return err
	}
	defer src.Done(out)
	if err := accepts(ctx, src, a); err != nil {
		return err
	}
	p.name = src.Name
	work, stop := context.WithCancel(ctx)
	defer stop()
	open := opener(work, src, a)
	j := job{
		Name: src.Name, Filter: a.Filter, Args: a.Args,
		Raw: a.Raw, Slurp: a.Slurp, Text: a.Text, Offset: a.Offset, Limit: a.Limit,
	}
	small, err := r.small(src, open, p, j)
	if err != nil {
		return err
	}
	if a.Save {
		out.Keep(src.Name)
	}
	g := &page{out: out, args: a, size: src.Size, next: a.Offset, enough: make(chan struct{})}
	g.whenFull = func() { g.timer = time.AfterFunc(r.CountFor, stop) }
	var o outcome
	switch {
	case small != nil:
		o, err = j.run(work, bytes.NewReader(small), g)
	case r.InProcess:
		var t io.Reader
		if t, err = open(); err == nil {
			o, err = j.run(work, t, g)
		}
	default:
		output := pageOutput(r.Memory)
		if a.Save {
			output = 0
		}
		o, err = runWorker(work, j, textOf(src, open, a), r.Memory, output, g, g.enough)
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	return r.finish(ctx, g, src, o, err)
}

// small is the whole text where the filter may run in this process; else nil.
func (r runner) small(src *tools.Source, open func() (io.Reader, error), p *program, j job) ([]byte, error) {
	if r.always || src.Size > smallText {
		return nil, nil
	}
	t, err := open()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(t, smallText+1))
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, nil
	}
	if ok, _ := p.cheap(b, j); !ok {
		return nil, nil
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// textOf is the source as a worker gets it: the open file where its bytes are the text, else a stream.
func textOf(src *tools.Source, open func() (io.Reader, error), a args) text {
	t := text{r: open}
	if f, ok := src.ReaderAt.(*os.File); ok && src.Plain() && src.Size > 0 && (src.Kind() != content.Table || a.Text) {
		t.file, t.size = f, src.Size
	}
	return t
}

// accepts refuses at once what is surely not JSON, before a part of it is taken for a result.
func accepts(ctx context.Context, src *tools.Source, a args) error {
	if src.Kind() == content.Binary {
		return fmt.Errorf(`jq: %s is binary, neither JSON nor text: look into it with slice {"bytes": …}`, clip(src.Name))
	}
	if a.Text || src.Kind() == content.JSON || src.Kind() == content.NDJSON || src.Kind() == content.Table || src.Size == 0 {
		return nil
	}
	t, err := src.Text()
	if err != nil {
		return err
	}
	window, err := io.ReadAll(io.LimitReader(&watched{ctx, t}, content.SniffSize))
	if err != nil {
		return err
	}
	e := &engine{}
	d := newDecoder(bytes.NewReader(window))
	for err == nil {
		err = d.d.SkipValue()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err := e.syntax(d, err); !errors.Is(err, errBroken) {
		return err
	}
	begun := bytes.HasPrefix(bytes.TrimSpace(window), []byte{'{'}) || bytes.HasPrefix(bytes.TrimSpace(window), []byte{'['})
	switch {
	case e.Broken.Cut && int64(len(window)) >= content.SniffSize: // it is only this look at it that ends here
		return nil
	case src.Kind() == content.Text && begun && e.Broken.Offset > 1: // JSON with a fault in it, which is told where it stands
		return nil
	}
	way := `"text": true gives its lines as strings; grep and slice work on it too`
	return fmt.Errorf("jq: %s is not JSON, but %s (byte %d: %s): %s", clip(src.Name), src.Kind(), e.Broken.Offset, e.Broken.Message, way)
}
