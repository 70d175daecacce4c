package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type keep struct {
	Name string `env:"-" placeholder:"TEXT" help:"A name for it, shown in lists."`
	JSON bool   `env:"-" name:"json" help:"Print the whole answer as JSON."`
}

func (k *keep) Help() string {
	return `Example:

  go test ./... 2>&1 | mcp-funnel keep --name tests
  mcp-funnel keep < big.json`
}

// Run keeps standard input up to its end. It has no time limit: the writer of the pipe sets the pace.
func (k *keep) Run(ctx context.Context, s *Settings, w *streams) error {
	if isTerminal(w.in) {
		return usagef("keep reads standard input; write COMMAND | mcp-funnel keep, or mcp-funnel keep < FILE")
	}
	app, err := s.open(w, true)
	if err != nil {
		return err
	}
	defer app.close()
	in := bufio.NewReader(w.in)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		return errors.New(
			"standard input is empty: nothing is kept; if the command writes to standard error, add 2>&1 before the pipe",
		)
	} else if err != nil {
		return fmt.Errorf("standard input: nothing is kept: %w", err)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	bar := newBar(w.err, "keep")
	a, err := app.funnel.Call(ctx, funnel.Request{
		Tool: keepTool(in), Args: json.RawMessage("{}"), Who: localSession(), Sources: app.sources, Keep: funnel.Always, Name: k.Name, Progress: bar.progress,
	})
	bar.end()
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped; what was read until then is kept: observations list shows it")
	}
	if err != nil {
		return err
	}
	if err := print(w, a, k.JSON); err != nil {
		return err
	}
	switch r := a.Receipts[0]; {
	case !r.Kept:
		return errors.New("standard input was not kept (run mcp-funnel doctor to see why)")
	case r.Complete && !k.JSON:
		// Standard output holds the input unchanged, so the ID goes to standard error.
		printMessage(w.err, "kept as "+observations.Prefix+r.ObservationID)
	}
	return nil
}

// keepTool returns a tool that copies standard input into the funnel. It is not in the catalog.
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
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
		}
	})
}
