package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/prompts"
)

// maxCompletions is what MCP allows in one answer.
const maxCompletions = 100

// maxWalk is how long one completion may look for paths.
const maxWalk = 50 * time.Millisecond

// CompletePromptArgument proposes observations and paths for an argument that names a source, and
// nothing for others.
func (s *Server) CompletePromptArgument(
	ctx context.Context, name string, argument mcp.CompleteArgument, _ mcp.CompleteContext,
) (*mcp.Completion, error) {
	at := slices.IndexFunc(s.prompts, func(p prompts.Prompt) bool { return p.Name == name })
	if _, extra := s.mcp.ListPrompts()[name]; extra && at < 0 {
		return &mcp.Completion{}, nil
	}
	if at < 0 {
		return nil, faultf(mcp.INVALID_PARAMS, "unknown prompt %s; prompts: %s", quoted(name), strings.Join(s.promptNames(), ", "))
	}
	has := func(a prompts.Argument) bool { return a.Name == argument.Name }
	if !slices.ContainsFunc(s.prompts[at].Arguments, has) {
		return nil, faultf(mcp.INVALID_PARAMS, "prompt %s has no argument %s", name, quoted(argument.Name))
	}
	if argument.Name != "source" && argument.Name != "path" {
		return &mcp.Completion{}, nil
	}
	return s.completeSource(ctx, argument.Value)
}

// completeSource proposes what a call may name that begins as value does: observations, newest first,
// then paths.
func (s *Server) completeSource(ctx context.Context, value string) (*mcp.Completion, error) {
	k := callOf(ctx)
	out, err := s.completeID(k.conn.who.Owner, observations.Prefix, value)
	if err != nil {
		return nil, err
	}
	sources, done, err := k.scope(ctx, s.sources(k.conn.who))
	if err != nil {
		return nil, err
	}
	defer done()
	walk, stop := context.WithTimeout(ctx, maxWalk)
	defer stop()
	paths := sources.Complete(walk, value, maxCompletions-len(out.Values))
	out.Values = append(out.Values, paths.Names...)
	out.Total += paths.Total
	out.HasMore = paths.Part || out.Total > len(out.Values)
	if paths.Part { // how many there are is not known
		out.Total = 0
	}
	return out, nil
}

// CompleteResourceArgument proposes the IDs of observations.
func (s *Server) CompleteResourceArgument(
	ctx context.Context, uri string, argument mcp.CompleteArgument, _ mcp.CompleteContext,
) (*mcp.Completion, error) {
	if uri != observationTemplate && uri != receiptTemplate {
		return nil, faultf(mcp.INVALID_PARAMS, "unknown resource template %s; templates: %s, %s",
			quoted(uri), observationTemplate, receiptTemplate)
	}
	if argument.Name != "id" {
		return nil, faultf(mcp.INVALID_PARAMS, "%s has no argument %s; its argument is id", uri, quoted(argument.Name))
	}
	return s.completeID(callOf(ctx).conn.who.Owner, "", argument.Value)
}

// completeID proposes IDs that begin as value does, newest first, each with the prefix before it.
func (s *Server) completeID(owner, prefix, value string) (*mcp.Completion, error) {
	list, err := s.observations(owner)
	if err != nil {
		return nil, err
	}
	out := &mcp.Completion{}
	begun := strings.ToLower(value)
	for _, o := range list {
		if id := prefix + string(o.ID); strings.HasPrefix(id, begun) {
			out.Total++
			if len(out.Values) < maxCompletions {
				out.Values = append(out.Values, id)
			}
		}
	}
	out.HasMore = out.Total > len(out.Values)
	return out, nil
}
