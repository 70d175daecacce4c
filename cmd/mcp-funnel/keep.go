package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type keep struct {
	Name string `env:"-" placeholder:"TEXT" help:"What it is, shown in lists."`
	JSON bool   `env:"-" name:"json" help:"Print the whole answer as JSON."`
}

func (k *keep) Help() string {
	return `Example:

  go test ./... 2>&1 | mcp-funnel keep --name tests
  mcp-funnel keep < big.json`
}

// Run keeps standard input to its end. There is no time limit: the pipe's writer sets the pace.
func (k *keep) Run(ctx context.Context, s *Settings, w *streams) error {
	if f := fileOf(w.in); f != nil && isTerminal(f) {
		return usagef("keep reads standard input; write COMMAND | mcp-funnel keep, or mcp-funnel keep < FILE")
	}
	h, err := s.open(w)
	if err != nil {
		return err
	}
	defer h.close()
	ctx, stop := stopped(ctx)
	defer stop()
	bar := newBar(w.err, "keep")
	a, err := h.funnel.Call(ctx, funnel.Request{
		Tool: keepTool(w.in), Args: json.RawMessage("{}"), Who: who(), Sources: h.sources, Keep: funnel.Always, Name: k.Name, Progress: bar.progress,
	})
	bar.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped; what was read until then is kept: observations list shows it")
	}
	if err != nil {
		return err
	}
	if k.JSON {
		err = printJSON(w, a)
	} else {
		err = print(w, a)
	}
	if err == nil && !k.JSON && len(a.Receipts) > 0 && a.Receipts[0].Kept && a.Receipts[0].Complete {
		// The output is standard input as it was; where it is kept is told beside it.
		complain(w.err, "kept as "+observations.Prefix+a.Receipts[0].ObservationID)
	}
	if err == nil && len(a.Receipts) > 0 && !a.Receipts[0].Kept {
		return errors.New("standard input was not kept (run mcp-funnel doctor to see why)")
	}
	return err
}

// keepTool copies standard input into the funnel. It is offered to no model.
func keepTool(in io.Reader) tools.Tool {
	type none struct{}
	return tools.New(tools.Tool{Name: "keep", Title: "Keep", Description: "Keeps standard input."}, func(ctx context.Context, _ none, _ tools.Input, out tools.Output) error {
		buf := make([]byte, 256<<10)
		var done int64
		for {
			n, err := in.Read(buf)
			if n > 0 {
				if _, err := out.Write(buf[:n]); err != nil {
					return err
				}
				done += int64(n)
				out.Progress(done, 0, "bytes")
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	})
}
