package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/text/content"
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

func (c *indexRm) Run(_ context.Context, s *cli.Settings, w *cli.Streams) error {
	app, err := s.Open(w, true)
	if err != nil {
		return err
	}
	defer app.Close()
	return app.Asker.RemoveIndexes(app.Sources)
}

// show prints the status of each index, and brings it up to date before if update is set.
func (c *indexStatus) show(ctx context.Context, s *cli.Settings, w *cli.Streams, update bool) error {
	path := s.GrantNamed(c.Path)
	app, err := s.Open(w, true)
	if err != nil {
		return err
	}
	defer app.Close()
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	bar := cli.NewBar(w.Err, "index", time.Now())
	all, err := app.Asker.Indexes(ctx, app.Sources, path, update, bar.Progress)
	bar.End()
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.WriteJSON(w.Out, all, "")
	}
	for _, x := range all {
		_, err := fmt.Fprintf(w.Out, "%s: %d of %s indexed (%d of %d MiB); not searchable %d; the index has %d MiB\n",
			content.VisibleLine(x.Path), x.Indexed, content.Plural(int64(x.Files), "file", "files"), x.IndexedBytes>>20,
			x.Bytes>>20, x.NotSearchable, x.IndexBytes>>20)
		if err != nil {
			return err
		}
		if x.Passages > 0 {
			_, err := fmt.Fprintf(w.Out, "  %d of %s found by meaning\n", x.Vectors,
				content.Plural(int64(x.Passages), "passage is", "passages are"))
			if err != nil {
				return err
			}
		}
		if late := x.Bytes - x.IndexedBytes; late > 0 {
			if _, err := fmt.Fprintf(w.Out, "  the rest takes about %s\n", x.Rest().Round(time.Second)); err != nil {
				return err
			}
		}
	}
	return nil
}
