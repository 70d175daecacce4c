package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server/callstate"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// New returns a server. It fails if Funnel or Sources is missing, or if a tool is invalid.
func New(o Options) (*Server, error) {
	if o.Funnel == nil || o.Sources == nil {
		return nil, errors.New("server: Options.Funnel and Options.Sources are required")
	}
	o.MaxMessage = cmp.Or(max(o.MaxMessage, 0), DefaultMaxMessage)
	o.MaxCalls = cmp.Or(max(o.MaxCalls, 0), DefaultMaxCalls)
	o.CallTimeout = cmp.Or(max(o.CallTimeout, 0), DefaultCallTimeout)
	o.EOFGrace = cmp.Or(max(o.EOFGrace, 0), DefaultEOFGrace)
	o.WriteTimeout = cmp.Or(max(o.WriteTimeout, 0), DefaultWriteTimeout)
	o.AskTimeout = cmp.Or(max(o.AskTimeout, 0), DefaultAskTimeout)
	o.Version = cmp.Or(o.Version, "dev")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Counter == nil {
		o.Counter = tokens.New(tokens.O200k)
	}
	s := &Server{
		options: o, sealer: callstate.NewSealer(o.SessionKey), upstreams: map[string]*upstreams{}, lateRoots: lateRoots,
		self: mcp.Implementation{Name: "mcp-funnel", Version: o.Version, Title: "mcp-funnel"},
	}
	s.run = func(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
		began := time.Now()
		answer, err := o.Funnel.Call(ctx, r)
		if observe := s.observer.Load(); observe != nil {
			(*observe)(r.Tool.Name, answer, time.Since(began))
		}
		return answer, err
	}
	// The messages of all running calls together may be four times as large as one message.
	allBytes := int(min(4*o.MaxMessage, math.MaxInt))
	s.callLimit.SetLimits(o.MaxCalls, allBytes)
	s.upstreamLimit.SetLimits(8*o.MaxCalls, allBytes)
	s.identityLimit.set(o.Rate, o.OwnerCalls)
	s.listens.Total, s.listens.PerOwner = maxAllListens, maxAllListens
	s.storeWatch = storeWatcher{store: o.Store, interval: storePollInterval, subscribers: map[*subscriber]bool{}}
	if err := (toolArea{s}).addTools(o.Tools); err != nil {
		return nil, err
	}
	s.offers.Tools = append(s.offers.Tools, o.Extra.Tools...)
	s.offers.Resources = o.Extra.Resources
	s.offers.Templates = slices.Concat(resourceArea{s}.templates(), resourceArea{s}.reportTemplates(), o.Extra.Templates)
	if s.observes() { // nothing of ours is listed
		s.offers.Templates = nil
	}
	s.offers.Prompts = o.Extra.Prompts
	return s, nil
}
