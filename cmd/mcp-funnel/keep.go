package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
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
func (k *keep) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if cli.IsTerminal(w.In) {
		return cli.Usagef("keep reads standard input; write COMMAND | mcp-funnel keep, or mcp-funnel keep < FILE")
	}
	return cli.Do(ctx, s, w, "keep", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		return k.read(ctx, app, w, bar)
	})
}

func (k *keep) read(ctx context.Context, app *cli.App, w *cli.Streams, bar *cli.Bar) error {
	expected := int64(0)
	if f, ok := w.In.(*os.File); ok {
		info, err := f.Stat()
		if at, e := f.Seek(0, io.SeekCurrent); err == nil && e == nil && info.Mode().IsRegular() {
			expected = info.Size() - at
		}
	}
	in := bufio.NewReader(w.In)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		return errors.New(
			"standard input is empty: nothing is kept; if the command writes to standard error, add 2>&1 before the pipe",
		)
	} else if err != nil {
		return fmt.Errorf("standard input: nothing is kept: %w", err)
	}
	a, err := app.Keep(ctx, in, funnel.Request{Name: k.Name, Expected: expected, Progress: bar.Progress})
	bar.End()
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
		cli.PrintMessage(w.Err, "kept as "+observations.Prefix+r.ObservationID)
	}
	return nil
}
