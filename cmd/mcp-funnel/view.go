package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/viewer"
)

// viewCmd is the command view.
type viewCmd struct {
	Handle   string `arg:"" optional:"" help:"What to open: obs:ID, inv:ID, ans:ID, or a session. Default: the overview."`
	NoOpen   bool   `env:"-" help:"Do not open the browser."`
	AnyOwner bool   `env:"-" help:"Also show what belongs to other identities."`
}

func (viewCmd) Help() string {
	return `It serves pages on a free port of this machine until Ctrl-C, and prints their address, which works once: it
becomes a cookie. A server for others offers the same pages with serve --http ADDR --view, to people who have a token.`
}

// Run serves the pages.
func (c *viewCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if _, err := viewer.PathOf(c.Handle, ""); err != nil {
		return cli.Usagef("%w", err)
	}
	return cli.Do(ctx, s, w, "view", func(ctx context.Context, app *cli.App, _ *cli.Bar) error {
		if app.Store == nil {
			return errors.New("there is no store to show: choose one with --store")
		}
		srv, err := newServer(ctx, s, app)
		if err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		view := app.Viewer(s, c.AnyOwner, nil)
		defer view.Close()
		path, _ := viewer.PathOf(c.Handle, view.Code(viewer.Who{Owner: observations.Local, Operator: true}))
		at := "http://" + l.Addr().String() + path
		if _, err := fmt.Fprintln(w.Out, at); err != nil {
			return err
		}
		cli.PrintMessage(w.Err, "serving until Ctrl-C; the address works once, within 10 minutes")
		if !c.NoOpen && cli.IsTerminal(w.Out) {
			openBrowser(ctx, at)
		}
		options := s.Options().HTTP
		options.View, options.ViewOnly = view, true
		return ended(ctx, app.Log, httpserver.Serve(ctx, srv, l, options))
	})
}

// openBrowser opens an address where there is a browser. It waits for nothing.
func openBrowser(ctx context.Context, at string) {
	words := map[string]string{"darwin": "open", "windows": "rundll32 url.dll,FileProtocolHandler"}[runtime.GOOS]
	if words == "" {
		words = "xdg-open"
	}
	args := append(strings.Fields(words), at)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // our own words
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
