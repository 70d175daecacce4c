package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/source"
	"github.com/mcp-funnel/mcp-funnel/internal/worker"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/stdio"
)

type serve struct{}

func (serve) Help() string {
	return `Reads MCP messages from standard input and answers on standard output until the input ends. An MCP client starts it; the README has
the block to paste into its configuration.

With --http ADDR it serves streamable HTTP at /mcp instead. It then ends on a signal, not with standard input or its parent process. Every
request needs a token; if you give none, one is generated, and a line on standard error names its file.`
}

func (serve) Run(ctx context.Context, k *kong.Context, s *Settings, w *streams) error {
	if s.HTTP == "" &&
		slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "http" }) {
		return usagef("--http is empty: write a port or HOST:PORT, such as 8080; leave it out to serve on stdio")
	}
	if _, pulls := clients[s.UsageFrom]; pulls && s.HTTP != "" {
		return usagef("--usage-from reads files of the user who starts the server: it works without --http only")
	}
	if s.SSE && s.HTTP == "" {
		return usagef("--sse is served over HTTP: set --http too")
	}
	app, err := s.open(w, s.HTTP == "")
	if err != nil {
		return err
	}
	app.shell.KeepSpare()
	defer app.close()
	if len(app.sources.Roots) == 0 && len(app.sources.Absent) == 0 {
		app.log.Warn(
			"no root: calls on files are refused; set --root DIR (the current directory is a home, a system directory or the file system's root)",
		)
	}
	worker.KeepSpare(time.Duration(s.JqIdle))
	defer worker.KeepSpare(0)
	delayCollections()
	if s.HTTP != "" {
		return s.serveHTTP(ctx, app, w)
	}
	return s.serveStdio(ctx, app, w)
}

// serveStdio serves MCP on standard input and output until the input ends, the parent dies or a signal arrives.
func (s *Settings) serveStdio(ctx context.Context, a *app, w *streams) error {
	if isTerminal(w.in) {
		printMessage(
			w.err,
			"serving MCP on standard input and output, for an MCP client to start; waiting for its messages. Ctrl-C or Ctrl-D ends it; mcp-funnel --help says what else there is",
		)
	}
	life := stdio.Lifetime{Parent: true}
	in, out := w.in, w.out
	if w.in == os.Stdin && w.out == os.Stdout {
		// From here on only the protocol can reach standard output; what a library prints goes to standard error.
		var err error
		if in, life.Out, err = stdio.Take(); err != nil {
			return err
		}
		out = life.Out
	}
	ctx, stop := life.Context(ctx)
	defer stop()
	srv, err := s.server(a)
	if err != nil {
		return err
	}
	return a.ended(ctx, stdio.Serve(ctx, srv, in, out))
}

// server makes the MCP server of an app.
func (s *Settings) server(a *app) (*server.Server, error) {
	o := s.options().Server
	o.Counter, o.Window = a.counter, s.ContextWindow
	o.Funnel, o.Store, o.Tools, o.Sources = a.funnel, a.store, a.catalog, a.sourcesOf
	o.Version, o.Log, o.Mask = versionText(), a.log, s.masker().OnPanic(a.logUnsearched)
	accounts := a.accounts()
	o.SessionOf, o.PullUsage = s.sessionOf(accounts), s.pullUsage(accounts)
	return server.New(o)
}

// ended returns the error of serving, or nil if serving ended because ctx did.
func (a *app) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	a.log.Info("ended", "cause", context.Cause(ctx))
	return nil
}

// sourcesOf returns what a session may name: all roots, and the observations of its owner.
func (a *app) sourcesOf(who funnel.Session) source.Set {
	src := a.sources
	src.Places = places(a.store, a.shell, who.Owner)
	return src
}
