package upstream

import (
	"context"
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/delta"
)

// lastCall names a call of an owner.
type lastCall struct{ owner, hash string }

// since has the receipt of a read-only tool say what changed since the last stored output of the same call.
func (s *Server) since(ctx context.Context, tool, text string, in tools.Input, out tools.Output) {
	var hints map[string]any
	_ = json.Unmarshal(s.member(tool, "annotations"), &hints) // without annotations the tool may change something
	if s.options.NoDelta || s.options.Observe || hints["readOnlyHint"] != true {
		return
	}
	call, now := lastCall{in.Owner, observations.CallHash(tool, in.Args)}, delta.NewText(true)
	now.Add([]byte(text))
	says, same := s.last.Since(ctx, in.Sources, call, &now, in.Mask, nil)
	out.Since(says, same)
	out.OnStored(func(id string) { s.last.Remember(call, id, &now, struct{}{}) })
}
