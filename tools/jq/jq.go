// Package jq runs jq programs over sources.
//
// It has the arguments, pages and notes of the tool; its packages decode, plan and engine run the filter. The language
// is that of gojq. A filter runs in a worker process with a hard memory limit and the deadline of the call. Only a
// filter that plan/safe.go accepts runs in this process, on a source of at most 64 KiB. The results are the same.
//
// A filter is parsed and compiled twice in each call: when the arguments are checked, and when the filter runs. Each
// time takes 8 to 65 µs for usual filters, 0.2 ms for long ones (BenchmarkCompile of plan). No filter is cached between
// calls.
package jq

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// JQ is the tool.
func JQ(o Options) tools.Tool {
	if o.CountFor <= 0 {
		o.CountFor = 2 * time.Second
	}
	if o.Memory <= 0 {
		o.Memory = worker.MachineMemory()
	}
	o.Memory = max(o.Memory, worker.MinMemory)
	return newTool(runner{Options: o})
}

func newTool(r runner) tools.Tool {
	return tools.New(tools.Tool{
		Name:        "jq",
		Opens:       tools.OpensSource,
		Title:       "Query JSON",
		Description: "jq on JSON, NDJSON, YAML, TOML, XML; table rows are objects, diff files {file, status, added, deleted, hunks}, log lines {line, time, lower-case level, source, service, text, key=value pairs, access log fields}, commits {commit, author, date, subject, files, added, deleted}, text {line, text}",
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
	for _, k := range kinds.All {
		if k != kinds.Binary {
			line := "  " + string(k.Name) + ": " + k.RecordIs
			if k.RecordNote != "" {
				line += "; " + k.RecordNote
			}
			all = append(all, line)
		}
	}
	return all
}

func (r runner) run(ctx context.Context, a args, in tools.Input, out tools.Output) error {
	if err := a.Check(); err != nil {
		return err
	}
	names, err := sourceNames(ctx, a.Source, in, out)
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	g := &page{out: out, rows: out.Page(), args: a, memory: r.Memory, next: a.Offset, enough: make(chan struct{})}
	g.whenFull = func() { g.timer = time.AfterFunc(r.CountFor, stop) }
	defer func() {
		if g.timer != nil {
			g.timer.Stop()
		}
	}()
	if a.Filter.Several {
		return r.runFilters(ctx, work, names, g, in)
	}
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
	g.size = src.Extent()
	o, err := r.runText(work, t, g, a.Offset)
	if errors.As(err, new(badFilter)) {
		return err
	}
	if err := g.finish(ctx, src, o, err); err != nil {
		return err
	}
	if o.Results == 0 || g.empty && o.Results == 1 {
		r.explain(ctx, names, g, in)
	}
	return nil
}

// Workers are the worker functions of this package, for worker.Main.
func Workers() map[string]worker.Worker {
	return map[string]worker.Worker{engine.WorkerName: engine.Worker}
}
