package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// maxCompletions is the maximum number of values that MCP allows in one answer.
const maxCompletions = 100

// maxWalk is the time limit for listing paths in one completion.
const maxWalk = 50 * time.Millisecond

func (s completionArea) complete(ctx context.Context, k *call) (any, error) {
	var ref struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	var argument mcp.CompleteArgument
	if fault := cmp.Or(k.frame.Param("ref", &ref), k.frame.Param("argument", &argument)); fault != nil {
		return nil, fault
	}
	var out *mcp.Completion
	var err error
	switch ref.Type {
	case "ref/prompt":
		out, err = s.completePrompt(ctx, ref.Name, argument.Name, argument.Value)
	case "ref/resource":
		out, err = s.completeResource(ctx, ref.URI, argument.Name, argument.Value)
	default:
		return nil, jsonrpc.BadParams("%s: unknown reference type %s; types: ref/prompt, ref/resource", k.frame.Method,
			jsonrpc.Quoted(ref.Type))
	}
	if err != nil {
		return nil, err
	}
	if out.Values == nil { // MCP requires the member
		out.Values = []string{}
	}
	return &mcp.CompleteResult{Completion: *out}, nil
}

// sourceArguments are the arguments of prompts that name a source.
var sourceArguments = []string{"source", "path", "document", "intent", "action"}

// completePrompt proposes observations and paths for arguments that name a source, and nothing for other arguments.
func (s completionArea) completePrompt(ctx context.Context, name, argument, value string) (*mcp.Completion, error) {
	p, fault := promptArea(s).prompt(name)
	if fault != nil {
		return nil, fault
	}
	if slices.ContainsFunc(s.offers.Prompts, func(p Prompt) bool { return p.Name == name }) {
		return &mcp.Completion{}, nil
	}
	if !slices.ContainsFunc(p.Arguments, func(a mcp.PromptArgument) bool { return a.Name == argument }) {
		return nil, jsonrpc.BadParams("prompt %s has no argument %s", name, jsonrpc.Quoted(argument))
	}
	if !slices.Contains(sourceArguments, argument) {
		return &mcp.Completion{}, nil
	}
	if strings.HasPrefix(strings.ToLower(value), investigations) {
		return s.completeInvestigation(ctx, investigations, value)
	}
	return s.completeSource(ctx, value)
}

// completeSource proposes the sources whose names start with value: observations, newest first, then paths.
func (s completionArea) completeSource(ctx context.Context, value string) (*mcp.Completion, error) {
	k := callOf(ctx)
	out, err := s.completeID(k.conn.account.Owner, observations.Prefix, value)
	if err != nil {
		return nil, err
	}
	sources, done, err := k.narrowedSources(ctx, s.options.Sources(k.conn.account))
	if err != nil {
		return nil, err
	}
	defer done()
	walk, stop := context.WithTimeout(ctx, maxWalk)
	defer stop()
	// Names that hold a secret are skipped: the masked name would be invalid.
	paths := sources.Complete(walk, value, maxCompletions-len(out.Values), s.options.Mask.Holds)
	out.Values = append(out.Values, paths.Names...)
	out.Total += paths.Total
	out.HasMore = paths.Incomplete || out.Total > len(out.Values)
	if paths.Incomplete { // how many there are is not known
		out.Total = 0
	}
	return out, nil
}

// completeResource proposes the IDs of observations.
func (s completionArea) completeResource(ctx context.Context, uri, argument, value string) (*mcp.Completion, error) {
	if uri == reportURI && argument == "id" {
		return s.completeInvestigation(ctx, "", value)
	}
	if !slices.Contains(templateNames(), uri) {
		return nil, jsonrpc.BadParams("unknown resource template %s; templates: %s",
			jsonrpc.Quoted(uri), strings.Join(templateNames(), ", "))
	}
	if argument == "range" && strings.HasSuffix(uri, "{range}") {
		return &mcp.Completion{Values: []string{}}, nil // any range is valid
	}
	if argument != "id" {
		return nil, jsonrpc.BadParams("%s has no argument %s; its argument is id", uri, jsonrpc.Quoted(argument))
	}
	return s.completeID(callOf(ctx).conn.account.Owner, "", value)
}

// completeID proposes observation IDs, newest first, each with prefix; it compares them with value ignoring its case.
func (s completionArea) completeID(owner, prefix, value string) (*mcp.Completion, error) {
	list, err := resourceArea(s).observations(owner)
	if err != nil {
		return nil, err
	}
	out := &mcp.Completion{}
	for _, o := range list {
		propose(out, prefix+string(o.ID), value)
	}
	out.HasMore = out.Total > len(out.Values)
	return out, nil
}

// propose adds a name if it begins with value in lower case.
func propose(to *mcp.Completion, name, value string) {
	if !strings.HasPrefix(name, strings.ToLower(value)) {
		return
	}
	if to.Total++; len(to.Values) < maxCompletions {
		to.Values = append(to.Values, name)
	}
}
