package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/stdio"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

type serve struct {
	Dirs []string `arg:"" optional:"" name:"dir" help:"Directories that tools may read, as with --root."`
}

func (serve) Help() string {
	return `Reads MCP messages from standard input and answers on standard output until the input ends. An MCP client starts it; the README has
the block to paste into its configuration.

With --http ADDR it serves streamable HTTP at /mcp instead. It then ends on a signal, not with standard input or its parent process; on
SIGTERM it first drains (--drain). Every request needs a token; if you give none, one is generated, and a line on standard error names its
file.`
}

func (v *serve) Run(
	ctx context.Context, k *kong.Context, s *cli.Settings, w *cli.Streams, file *cli.FileResolver,
) error {
	if err := v.grant(k, s); err != nil {
		return cli.Usagef("%w", err)
	}
	common := upstream.Common{Version: versionText(), Optional: true}
	return serveWith(ctx, k, s, w, cli.Upstreams{Servers: file.Servers, Common: common})
}

// grant makes the named directories roots. Without the word serve only an existing one is taken for a root, so that a
// misspelled command does not start a server. A list after -- is explicit: a bundle writes one, also of no directory.
func (v *serve) grant(k *kong.Context, s *cli.Settings) error {
	explicit := slices.Contains(k.Args, "--")
	v.Dirs = slices.DeleteFunc(v.Dirs, func(dir string) bool {
		unset := cli.IsUnsetOption(dir)
		explicit = explicit || unset
		return unset
	})
	words, _ := commandWords()
	for _, dir := range v.Dirs {
		info, err := os.Stat(cli.ExpandPath(dir))
		if dir == "" || err == nil && info.IsDir() || named(k.Args, "serve") > named(v.Dirs, "serve") {
			continue
		}
		why := "it is neither a command nor an existing directory"
		if meant := content.Nearest(dir, slices.Sorted(maps.Values(words))); err == nil {
			why = "it is no directory"
		} else if meant != "" {
			why += "; did you mean " + meant + "?"
		}
		return fmt.Errorf("unexpected argument %.200s: %s; see mcp-funnel --help", dir, why)
	}
	flag := slices.ContainsFunc(k.Path, func(p *kong.Path) bool {
		return p.Flag != nil && p.Flag.Name == "root" && !p.Resolved
	})
	return s.GrantDirs(v.Dirs, flag, explicit)
}

// named counts how often a word stands among others.
func named(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

// serveWith serves an app with upstream servers.
func serveWith(ctx context.Context, k *kong.Context, s *cli.Settings, w *cli.Streams, up cli.Upstreams) error {
	if s.HTTP == "" &&
		slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == "http" }) {
		return cli.Usagef("--http is empty: write a port or HOST:PORT, such as 8080; leave it out to serve on stdio")
	}
	if _, pulls := clientusage.Clients[s.UsageFrom]; pulls && s.HTTP != "" {
		return cli.Usagef("--usage-from reads files of the user who starts the server: it works without --http only")
	}
	if s.SSE && s.HTTP == "" {
		return cli.Usagef("--sse is served over HTTP: set --http too")
	}
	if s.HTTPView && s.HTTP == "" {
		return cli.Usagef("--view is served over HTTP: set --http too, or run mcp-funnel view")
	}
	if s.HTTP == "" && (s.RatePerIdentity != server.Rate{} || s.CallsPerIdentity != 0) {
		return cli.Usagef("--rate-per-identity and --calls-per-identity limit identities over HTTP; stdio has one, which " +
			"--max-calls limits: set --http too, or leave them out")
	}
	app, err := s.OpenWith(w, s.HTTP == "", up)
	if err != nil {
		return err
	}
	app.Shell.KeepSpare()
	defer app.Close()
	if k.Selected().Name == "serve" && len(app.Sources.Roots) == 0 && len(app.Sources.Absent) == 0 {
		why := "the current directory is a home, a system directory or the file system's root"
		if s.Root != nil {
			why = "no directory was chosen"
		}
		app.Log.Warn(
			"no root: calls on files are refused; set --root DIR, or choose directories in your client (" + why + ")")
	}
	for _, warning := range s.Warnings() {
		app.Log.Warn(warning)
	}
	if why := unnamedSession(s); why != "" {
		app.Log.Warn(why)
	}
	worker.KeepSpare(time.Duration(s.JqIdle))
	defer worker.KeepSpare(0)
	delayCollections()
	if s.HTTP != "" {
		return serveHTTP(s, ctx, app, w)
	}
	return serveStdio(s, ctx, app, w)
}

// serveStdio serves MCP on standard input and output until the input ends, the parent dies or a signal arrives.
func serveStdio(s *cli.Settings, ctx context.Context, a *cli.App, w *cli.Streams) error {
	if cli.IsTerminal(w.In) {
		cli.PrintMessage(
			w.Err,
			"serving MCP on standard input and output, for an MCP client to start; waiting for its messages. Ctrl-C or Ctrl-D ends it; mcp-funnel --help says what else there is",
		)
	}
	life := stdio.Lifetime{Parent: true}
	in, out := w.In, w.Out
	if w.In == os.Stdin && w.Out == os.Stdout {
		// From here on only the protocol can reach standard output; what a library prints goes to standard error.
		var err error
		if in, life.Out, err = stdio.Take(); err != nil {
			return err
		}
		out = life.Out
	}
	ctx, stop := life.Context(ctx)
	defer stop()
	srv, err := newServer(ctx, s, a)
	if err != nil {
		return err
	}
	return ended(ctx, a.Log, stdio.Serve(ctx, srv, in, out))
}

// newServer makes the MCP server of an app, which serves until ctx ends.
func newServer(ctx context.Context, s *cli.Settings, a *cli.App) (*server.Server, error) {
	o := s.Options().Server
	o.Counter, o.Window = a.Counter, s.ContextWindow
	o.EOFGrace = max(o.EOFGrace, 1) // 0 would be the default
	o.Funnel, o.Store, o.Trace = a.Funnel, a.Store, a.Trace
	o.Tools, o.Sources = a.Catalog, a.SourcesOf
	if s.HTTP != "" {
		o.Replica = s.ReplicaName()
		var err error
		if s.SessionKeyFile == "" && a.Database != nil {
			if o.SessionKey, err = httpserver.KeepSessionKey(a.Records); err != nil {
				return nil, err
			}
		} else if s.SessionKeyFile != "" {
			if o.SessionKey, err = httpserver.ReadSessionKey(s.SessionKeyFile); err != nil {
				return nil, cli.Usagef("--session-key-file: %w", err)
			}
		}
	}
	o.Version, o.Log, o.Mask = versionText(), a.Log, s.Masker().OnPanic(a.LogUnsearched)
	accounts := a.Accounts()
	o.Upstreams = a.Upstreams
	if a.Store != nil {
		pages := a.Viewer(s, false, nil)
		context.AfterFunc(ctx, pages.Close)
		o.App = pages
	}
	o.SessionOf, o.PullUsage = sessionOf(s, accounts), pullUsage(s, accounts)
	return server.New(o)
}

// ended returns the error of serving, or nil if serving ended because ctx did.
func ended(ctx context.Context, log *slog.Logger, err error) error {
	if ctx.Err() == nil {
		return err
	}
	log.Info("ended", "cause", context.Cause(ctx))
	return nil
}
