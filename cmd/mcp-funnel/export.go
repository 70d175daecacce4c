package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// exportCmd is the command export.
type exportCmd struct {
	Handle   string `arg:"" help:"What to write: obs:ID, or a session as stats and the pages name it."`
	HTML     string `env:"-" name:"html" required:"" placeholder:"FILE" help:"The file, at most 32 MiB."`
	Force    bool   `env:"-" help:"Replace a file that exists."`
	AnyOwner bool   `env:"-" help:"Also write what belongs to other identities."`
}

// Run writes the file.
func (c *exportCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	return cli.Do(ctx, s, w, "export", func(ctx context.Context, app *cli.App, _ *cli.Bar) error {
		if app.Store == nil {
			return errors.New("there is no store to export from: choose one with --store")
		}
		view := app.Viewer(s, c.AnyOwner, nil)
		defer view.Close()
		var page bytes.Buffer // an export that fails neither makes nor replaces a file
		if err := view.Export(ctx, viewer.Who{Owner: observations.Local, Operator: true}, c.Handle, &page); err != nil {
			return err
		}
		flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
		if c.Force {
			flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		}
		f, err := os.OpenFile(c.HTML, flags, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s exists already: name a new file, or add --force", c.HTML)
		}
		if err != nil {
			return err
		}
		_, err = f.Write(page.Bytes())
		return errors.Join(err, f.Close())
	})
}
