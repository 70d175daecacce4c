package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
)

// indexCmd looks after the indexes that ask makes.
type indexCmd struct {
	Status indexStatus `cmd:"" default:"withargs" help:"Show what is indexed, and what would be."`
	Update indexUpdate `cmd:"" help:"Bring the index up to date, however long it takes."`
	Rm     indexRm     `cmd:"" help:"Remove the indexes of the roots; ask makes them again."`
}

type indexStatus struct {
	Path string `arg:"" optional:"" help:"Directory; all roots by default."`
	JSON bool   `env:"-" name:"json" help:"Print JSON."`
}

func (c *indexStatus) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return c.show(ctx, s, w, false)
}

type indexUpdate indexStatus

func (c *indexUpdate) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return (*indexStatus)(c).show(ctx, s, w, true)
}

type indexRm struct{}

func (c *indexRm) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return cli.Do(ctx, s, w, "index", func(_ context.Context, app *cli.App, _ *cli.Bar) error {
		return app.Asker.RemoveIndexes(app.Sources)
	})
}

// show prints the status of each index, and brings it up to date before if update is set.
func (c *indexStatus) show(ctx context.Context, s *cli.Settings, w *cli.Streams, update bool) error {
	path := s.GrantNamed(c.Path)
	return cli.Do(ctx, s, w, "index", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		all, err := app.Asker.Indexes(ctx, app.Sources, path, update, bar.Progress)
		if err != nil {
			return err
		}
		bar.End()
		return show(w, c.JSON, all, func() string { return indexText(all) })
	})
}

func indexText(all []ask.IndexStatus) string {
	var b strings.Builder
	for _, x := range all {
		fmt.Fprintf(&b, "%s: %d of %s indexed (%d of %d MiB); not searchable %d; the index has %d MiB\n",
			content.VisibleLine(x.Path), x.Indexed, content.Plural(int64(x.Files), "file", "files"), x.IndexedBytes>>20,
			x.Bytes>>20, x.NotSearchable, x.IndexBytes>>20)
		if x.Passages > 0 {
			fmt.Fprintf(&b, "  %d of %s found by meaning\n", x.Vectors,
				content.Plural(int64(x.Passages), "passage is", "passages are"))
		}
		if x.Bytes > x.IndexedBytes {
			fmt.Fprintf(&b, "  the rest takes about %s\n", x.Rest().Round(time.Second))
		}
	}
	return b.String()
}
