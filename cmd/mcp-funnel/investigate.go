package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

type investigateCmd struct {
	Path     string `arg:"" optional:"" help:"Directory: below a root where --root is given; the first root by default."`
	Goal     string `env:"-" placeholder:"TEXT" help:"What is to be found out."`
	Fresh    bool   `env:"-" help:"Begin again under a new ID; the old investigation stays."`
	Markdown bool   `env:"-" help:"Print the report as Markdown, which is the default."`
	JSON     bool   `env:"-" name:"json" help:"Print the report as JSON."`
}

func (c *investigateCmd) Help() string {
	return `Investigates a directory in pieces, goes on where it was left, and prints the report.

With --endpoint-url the endpoint's model reads; without one, the report says what
the files say of themselves. Agents do it with the tool investigate (--toolsets
core,investigation): all three may work on one investigation, one after the other.
With --dry-run it prints how many orders it would take, and keeps nothing.

Examples:

  mcp-funnel investigate
  mcp-funnel investigate src --goal 'how are sessions kept?' --endpoint-url http://127.0.0.1:8080/v1
  mcp-funnel investigate src --dry-run`
}

// Run investigates to the end and prints the report.
func (c *investigateCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if c.Markdown && c.JSON {
		return cli.Usagef("give one of --markdown and --json")
	}
	in, out, err := prices(s.EndpointPrice)
	if err != nil {
		return err
	}
	path := s.GrantNamed(c.Path)
	return cli.Do(ctx, s, w, "investigate", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		if s.DryRun {
			return c.estimate(ctx, app, w, path)
		}
		if s.EndpointURL != "" {
			if err := app.UseEndpoint(s, false); err != nil {
				return err
			}
		}
		args := investigate.Args{Path: path, Goal: c.Goal, Fresh: c.Fresh}
		r, err := app.Investigator.Run(ctx, app.Caller(), args, bar.Progress)
		if err != nil {
			return err
		}
		bar.End()
		if r.Failed != "" {
			cli.PrintMessage(w.Err, r.Failed+"; the rest of the report says what the files say of themselves")
		}
		if r.Spent.Prompt > 0 {
			text := fmt.Sprintf("the endpoint reports %d tokens in and %d out", r.Spent.Prompt, r.Spent.Completion)
			if s.EndpointPrice != "" {
				text += fmt.Sprintf(", which cost %.4f", (in*float64(r.Spent.Prompt)+out*float64(r.Spent.Completion))/1e6)
			}
			cli.PrintMessage(w.Err, text)
		}
		return show(w, c.JSON, masked{s, r}, func() string { return printable(s, r.Text()) })
	})
}

func (c *investigateCmd) estimate(ctx context.Context, app *cli.App, w *cli.Streams, path string) error {
	e, err := app.Investigator.Estimate(ctx, app.Caller(), path)
	if err != nil {
		return err
	}
	return show(w, c.JSON, e, func() string {
		return fmt.Sprintf("%d files in %d directories, about %d tokens of text; %d orders, about %d tokens to read\n",
			e.Files, e.Directories, e.Tokens, e.Orders, e.Price)
	})
}

// prices reads the prices of a million tokens in and out.
func prices(text string) (in, out float64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, ok := strings.Cut(text, ",")
	in, err = strconv.ParseFloat(strings.TrimSpace(first), 64)
	if err == nil && ok {
		out, err = strconv.ParseFloat(strings.TrimSpace(second), 64)
	}
	if err != nil || !ok || in < 0 || out < 0 {
		return 0, 0, cli.Usagef("--endpoint-price %q: give two prices of a million tokens, in and out, such as 0.25,2", text)
	}
	return in, out, nil
}
