package main

import (
	"context"
	"os"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type serve struct{}

// warmAfter is when the vocabulary is loaded unasked.
const warmAfter = 100 * time.Millisecond

func (serve) Help() string {
	return `Reads MCP messages from standard input and answers on standard output, until the input ends. An MCP client starts it; the README has the block to paste into yours.`
}

func (serve) Run(ctx context.Context, s *Settings, w *streams) error {
	h, err := s.open(w)
	if err != nil {
		return err
	}
	defer h.close()
	// The vocabulary takes 20 ms of a core: after initialize is answered, and before anybody calls a tool.
	defer time.AfterFunc(warmAfter, h.counter.Warm).Stop()
	life := server.Lifetime{Parent: true}
	in, out := w.in, w.out
	if fileOf(w.in) == os.Stdin && fileOf(w.out) == os.Stdout {
		// From here on nothing but the protocol can reach standard output, whatever a library prints.
		if in, life.Out, err = server.TakeStdio(); err != nil {
			return err
		}
		out = life.Out
	}
	ctx, stop := life.Context(ctx)
	defer stop()
	srv, err := server.New(server.Options{
		Mask:   s.masker(),
		Funnel: h.funnel, Store: h.store, Tools: h.catalog, Version: versionText(), Log: h.log,
		Sources:    func(funnel.Session) tools.Sources { return h.sources },
		MaxMessage: int64(s.MaxMessage), MaxCalls: s.MaxCalls, CallTimeout: time.Duration(s.CallTimeout), EOFGrace: time.Duration(s.EofGrace),
	})
	if err != nil {
		return err
	}
	err = srv.ServeStdio(ctx, in, out)
	if ctx.Err() != nil { // told to end, and ended: nothing failed
		h.log.Info("ended", "cause", context.Cause(ctx))
		return nil
	}
	return err
}
