package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools/words"
)

type call struct {
	Tool string   `arg:"" optional:"" help:"Name of the tool; without it, print what the tools do."`
	Args []string `arg:"" optional:"" placeholder:"KEY=VALUE" help:"Arguments: KEY=VALUE …, or one JSON object. A word without = is the required argument of a tool that has only one."`
	JSON bool     `env:"-" name:"json" help:"Print the whole answer as JSON: blocks, receipts, failed."`
}

func (c *call) Help() string {
	return `Examples:

  mcp-funnel call read README.md
  mcp-funnel call search pattern=TODO path=src
  mcp-funnel call jq source=obs:k3v9q2m7x4ab filter='group_by(.file)|length' slurp=true
  mcp-funnel call slice '{"source":"go.mod","lines":"1-5"}'`
}

func (c *call) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if c.Tool == "" {
		_, err := io.WriteString(w.Out, overview(s))
		return err
	}
	if c.Tool == "run" { // a command ends with this process: there is no later call that could continue it
		s.Slice = max(s.Slice, s.RunTimeout+cli.Age(30*time.Second))
		s.CallTimeout = max(s.CallTimeout, s.RunTimeout+cli.Age(time.Minute))
	}
	return cli.Do(ctx, s, w, c.Tool, func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		t, err := app.Tool(c.Tool)
		if err != nil {
			return err
		}
		args, err := words.Parse(t, c.Args)
		if err != nil {
			return cli.Usagef("%w", err)
		}
		_, err = callTool(ctx, s, w, app, bar, funnel.Request{Tool: t, Args: args}, c.JSON)
		if errors.Is(err, cli.ErrFailed) && t.Check(args) != nil {
			return cli.ErrBadArguments
		}
		return err
	})
}

// callTool calls a tool within the time limit of a call, and prints its answer.
func callTool(
	ctx context.Context, s *cli.Settings, w *cli.Streams, app *cli.App, bar *cli.Bar, r funnel.Request, asJSON bool,
) (funnel.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.CallTimeout))
	defer cancel()
	r.Progress = bar.Progress
	a, err := app.Call(ctx, r)
	if err != nil {
		return a, err
	}
	bar.End()
	return a, print(w, a, asJSON)
}
