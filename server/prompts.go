package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/prompts"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// prompts returns the built-in prompts and those of [Options].Extra. The built-in ones are read on first use: most
// clients never ask for prompts.
func (s promptArea) prompts() []Prompt {
	all := prompts.All()
	if s.observes() {
		all = nil
	}
	list := make([]Prompt, 0, len(all)+len(s.offers.Prompts))
	for _, p := range all {
		if p.Toolset != "" && !s.offersToolset(p.Toolset) {
			continue // it names tools that are not offered
		}
		listed := mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
		for _, a := range p.Arguments {
			listed.Arguments = append(listed.Arguments, mcp.PromptArgument{
				Name: a.Name, Description: a.Description, Required: a.Required,
			})
		}
		list = append(list, Prompt{listed, s.promptHandler(p)})
	}
	return append(list, s.offers.Prompts...)
}

// promptHandler returns the function that fills a prompt with a client's arguments.
func (s promptArea) promptHandler(p prompts.Prompt) func(
	context.Context, map[string]string,
) (*mcp.GetPromptResult, error) {
	return func(ctx context.Context, sent map[string]string) (*mcp.GetPromptResult, error) {
		p, values, err := s.promptValues(ctx, p, sent)
		if err != nil {
			return nil, err
		}
		text, err := p.Text(values)
		if err != nil {
			return nil, jsonrpc.BadParams("%s", err)
		}
		r := funnel.Request{
			Tool: tools.Tool{Name: p.Name}, Args: json.RawMessage("{}"), Via: trace.ViaPrompt, Uncut: true,
		}
		if fault := callOf(ctx).addMeta(&r); fault != nil {
			return nil, fault
		}
		s.options.Funnel.Show(r, text)
		message := mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}
		return &mcp.GetPromptResult{Description: p.Description, Messages: []mcp.PromptMessage{message}}, nil
	}
}

// prompt returns the prompt with this name, or a fault that lists the valid names.
func (s promptArea) prompt(name string) (Prompt, *jsonrpc.Fault) {
	all := s.prompts()
	if at := slices.IndexFunc(all, func(p Prompt) bool { return p.Name == name }); at >= 0 {
		return all[at], nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return Prompt{}, jsonrpc.BadParams(
		"unknown prompt %s; prompts: %s",
		jsonrpc.Quoted(name),
		strings.Join(names, ", "),
	)
}

func (s promptArea) listPrompts(_ context.Context, k *call) (any, error) {
	if fault := noCursor(k.frame); fault != nil {
		return nil, fault
	}
	all := s.prompts()
	list := &mcp.ListPromptsResult{Prompts: make([]mcp.Prompt, len(all))}
	for i, p := range all {
		list.Prompts[i] = p.Prompt
	}
	return list, nil
}

func (s promptArea) getPrompt(ctx context.Context, k *call) (any, error) {
	var sent map[string]json.RawMessage
	name, fault := k.frame.RequiredString("name")
	if fault == nil {
		fault = k.frame.Param("arguments", &sent)
	}
	if fault != nil {
		return nil, fault
	}
	p, fault := s.prompt(name)
	if fault != nil {
		return nil, fault
	}
	args := make(map[string]string, len(sent))
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		var value string
		if err := json.Unmarshal(sent[name], &value); err != nil {
			return nil, jsonrpc.BadParams("%s: %s", k.frame.Method, jsonrpc.WrongType("arguments."+name, err))
		}
		args[name] = value
	}
	return p.Get(ctx, args)
}
