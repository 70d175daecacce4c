package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/funnel"
)

// New returns a server. It fails if Funnel or Sources is missing, or if a tool is invalid.
func New(o Options) (*Server, error) {
	if o.Funnel == nil || o.Sources == nil {
		return nil, errors.New("server: Options.Funnel and Options.Sources are required")
	}
	o.MaxMessage = orDefault(o.MaxMessage, DefaultMaxMessage)
	o.MaxCalls = orDefault(o.MaxCalls, DefaultMaxCalls)
	o.CallTimeout = orDefault(o.CallTimeout, DefaultCallTimeout)
	o.EOFGrace = orDefault(o.EOFGrace, DefaultEOFGrace)
	o.WriteTimeout = orDefault(o.WriteTimeout, DefaultWriteTimeout)
	o.AskTimeout = orDefault(o.AskTimeout, DefaultAskTimeout)
	o.Version = cmp.Or(o.Version, "dev")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{
		options: o, store: o.Store, sources: o.Sources, log: o.Log, mask: o.Mask,
		sealer: newStateSealer(), lateRoots: lateRoots,
		self: mcp.Implementation{Name: "mcp-funnel", Version: o.Version, Title: "mcp-funnel"},
	}
	s.run = s.observed(o.Funnel.Call)
	// The messages of all running calls together may be four times as large as one message.
	s.callLimit.MaxCalls, s.callLimit.MaxBytes = o.MaxCalls, 4*o.MaxMessage
	s.listens.Total, s.listens.PerOwner = maxAllListens, maxAllListens
	s.storeWatch = storeWatcher{store: o.Store, interval: storePollInterval, subscribers: map[*subscriber]bool{}}
	if err := s.addTools(o.Tools); err != nil {
		return nil, err
	}
	s.offers.Tools = append(s.offers.Tools, o.Extra.Tools...)
	s.offers.Resources = o.Extra.Resources
	s.offers.Templates = append(s.templates(), o.Extra.Templates...)
	s.offers.Prompts = o.Extra.Prompts
	return s, nil
}

func orDefault[T int | int64 | time.Duration](v, or T) T {
	if v <= 0 {
		return or
	}
	return v
}

// observed wraps run so that it reports each call to the observer, if one is set.
func (s *Server) observed(
	run func(context.Context, funnel.Request) (funnel.Answer, error),
) func(context.Context, funnel.Request) (funnel.Answer, error) {
	return func(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
		began := time.Now()
		answer, err := run(ctx, r)
		if o := s.observer.Load(); o != nil {
			(*o)(r.Tool.Name, answer, time.Since(began))
		}
		return answer, err
	}
}
