package server

import (
	"context"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// caller returns what calls other tools as parts of a call: each takes from the rate of the call's identity, sees its
// sources, and counts among the workers of the call.
func (s toolArea) caller(k *call, r funnel.Request) (*tools.Caller, error) {
	up, err := k.upstreams()
	if err != nil {
		return nil, err
	}
	list := func(ctx context.Context) ([]tools.Tool, error) {
		own := s.options.Tools
		if up == nil {
			return own, nil
		}
		listed, err := up.Tools(ctx)
		return append(own[:len(own):len(own)], listed...), err
	}
	run := func(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
		for wait := s.identityLimit.wait(r.Who.Owner); wait > 0; wait = s.identityLimit.wait(r.Who.Owner) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return funnel.Answer{}, context.Cause(ctx)
			}
		}
		r.Tool = withSources(r.Tool)
		return s.run(ctx, r)
	}
	return funnel.NewCaller(r, list, run), nil
}
