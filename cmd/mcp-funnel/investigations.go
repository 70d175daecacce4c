package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// investigationsCmd looks at what investigations found.
type investigationsCmd struct {
	List   investigationsList   `cmd:"" default:"withargs" help:"List investigations, the last used first."`
	Status investigationsShow   `cmd:"" help:"Show how far one is."`
	Flags  investigationsShow   `cmd:"" help:"Show its flags, the worst first."`
	Weak   investigationsShow   `cmd:"" help:"Show the entries that are least sure."`
	Absent investigationsShow   `cmd:"" help:"Show the citations that are not there."`
	Report investigationsShow   `cmd:"" help:"Print its report."`
	Verify investigationsVerify `cmd:"" help:"Look up every citation again; exit code 1 if one is absent or no longer holds, or an entry is out of date."`
	Rm     investigationsRm     `cmd:"" help:"Remove one."`
}

type investigationsList struct {
	JSON bool `env:"-" name:"json" help:"Print JSON."`
}

func (c *investigationsList) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return cli.Do(ctx, s, w, "investigations", func(_ context.Context, app *cli.App, _ *cli.Bar) error {
		all, err := app.Investigator.List(observations.Local)
		if err != nil {
			return err
		}
		return show(w, c.JSON, all, func() string {
			text := ""
			for _, m := range all {
				text += fmt.Sprintf("inv:%s  %s  %s  %s\n", m.ID, m.LastUsed.Format("2006-01-02 15:04"),
					content.VisibleLine(m.Target), content.VisibleLine(m.Goal))
			}
			return cmp.Or(text, "no investigations; mcp-funnel investigate begins one\n")
		})
	})
}

// investigationsShow prints a view of the tool. Which one follows from the command.
type investigationsShow struct {
	Path string `arg:"" optional:"" help:"Directory, inv:ID or the bare ID; the first root by default."`
}

func (c *investigationsShow) Run(ctx context.Context, s *cli.Settings, w *cli.Streams, k *kong.Context) error {
	return withInvestigation(ctx, s, w, c.Path, func(ctx context.Context, app *cli.App, name string) error {
		_, what, _ := strings.Cut(commandPath(k), " ")
		text, err := app.Investigator.View(ctx, app.Caller(), name, what)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(w.Out, printable(s, text))
		return err
	})
}

type investigationsVerify struct {
	Path string `arg:"" optional:"" help:"Directory, inv:ID or the bare ID; the first root by default."`
	JSON bool   `env:"-" name:"json" help:"Print JSON."`
}

func (c *investigationsVerify) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return withInvestigation(ctx, s, w, c.Path, func(ctx context.Context, app *cli.App, name string) error {
		v, err := app.Investigator.Verify(ctx, app.Caller(), name)
		if err != nil {
			return err
		}
		err = show(w, c.JSON, v, v.Text)
		if err == nil && !v.Holds() {
			err = cli.ErrFailed
		}
		return err
	})
}

type investigationsRm struct {
	Path string `arg:"" help:"Directory, inv:ID or the bare ID."`
}

func (c *investigationsRm) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return withInvestigation(ctx, s, w, c.Path, func(_ context.Context, app *cli.App, name string) error {
		id, err := app.Investigator.Remove(app.Caller(), name)
		if err == nil {
			_, err = fmt.Fprintf(w.Out, "removed inv:%s\n", id)
		}
		return err
	})
}

// withInvestigation opens the app and calls do with the name of an investigation as the tool takes it.
func withInvestigation(
	ctx context.Context, s *cli.Settings, w *cli.Streams, name string,
	do func(ctx context.Context, app *cli.App, name string) error,
) error {
	name = s.GrantNamed(name)
	err := cli.Do(ctx, s, w, "investigations", func(ctx context.Context, app *cli.App, _ *cli.Bar) error {
		if _, err := observations.ParseID(observations.Prefix + name); err == nil && !strings.Contains(name, "/") {
			if _, err := app.Sources.Directory(name); err != nil { // a bare ID, unless a directory is called so
				name = "inv:" + name
			}
		}
		return do(ctx, app, name)
	})
	if errors.Is(err, investigate.ErrNone) {
		return fmt.Errorf("%w; mcp-funnel investigate %s begins one", err, name)
	}
	return err
}
