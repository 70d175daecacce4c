package main

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/child"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type serve struct{}

func (serve) Help() string {
	return `Reads MCP messages from standard input and answers on standard output, until the input ends. An MCP client starts it; the README has the block to paste into yours.

With --http ADDR it serves streamable HTTP at /mcp instead, until a signal ends it: neither the end of standard input nor that of the process that started it do. Every request carries a token; where you give none, one is made, and the line on standard error names its file.`
}

func (serve) Run(ctx context.Context, k *kong.Context, s *Settings, w *streams) error {
	if s.HTTP == "" && slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "http" }) {
		return usagef("--http is empty: write a port or HOST:PORT, such as 8080; leave it out to serve on stdio")
	}
	if s.SSE && s.HTTP == "" {
		return usagef("--sse is served over HTTP: set --http too")
	}
	h, err := s.openFor(w, s.HTTP == "")
	if err != nil {
		return err
	}
	defer h.close()
	if len(h.sources.Roots) == 0 {
		h.log.Warn("no root: calls on files are refused; set --root DIR (the current directory is a home, a system directory or the file system's root)")
	}
	child.KeepSpare(time.Duration(s.JqIdle))
	defer child.KeepSpare(0)
	collectSeldom()
	if s.HTTP != "" {
		return s.serveHTTP(ctx, h, w)
	}
	return s.serveStdio(ctx, h, w)
}

func (s *Settings) serveStdio(ctx context.Context, h *house, w *streams) error {
	if f := fileOf(w.in); f != nil && isTerminal(f) {
		complain(w.err, "serving MCP on standard input and output, for an MCP client to start; waiting for its messages. Ctrl-C or Ctrl-D ends it; mcp-funnel --help says what else there is")
	}
	life := server.Lifetime{Parent: true}
	in, out := w.in, w.out
	if fileOf(w.in) == os.Stdin && fileOf(w.out) == os.Stdout {
		// From here on nothing but the protocol can reach standard output, whatever a library prints.
		var err error
		if in, life.Out, err = server.TakeStdio(); err != nil {
			return err
		}
		out = life.Out
	}
	ctx, stop := life.Context(ctx)
	defer stop()
	srv, err := s.server(h)
	if err != nil {
		return err
	}
	return h.ended(ctx, srv.ServeStdio(ctx, in, out))
}

func (s *Settings) server(h *house) (*server.Server, error) {
	return server.New(server.Options{
		Funnel: h.funnel, Store: h.store, Tools: h.catalog, Version: versionText(), Log: h.log, Mask: s.masker().Telling(h.unsearched), Sources: h.sourcesOf,
		MaxMessage: int64(s.MaxMessage), MaxCalls: s.MaxCalls, CallTimeout: time.Duration(s.CallTimeout), EOFGrace: time.Duration(s.EofGrace),
		AskTimeout: time.Duration(s.AskTimeout), IgnoreRoots: !s.ClientRoots,
	})
}

// ended is what serving came to: told to end, and ended, nothing failed.
func (h *house) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	h.log.Info("ended", "cause", context.Cause(ctx))
	return nil
}

// sourcesOf is what a caller may name: the roots are everybody's, observations are each owner's own.
func (h *house) sourcesOf(who funnel.Session) tools.Sources {
	src := h.sources
	src.Owner = who.Owner
	return src
}
