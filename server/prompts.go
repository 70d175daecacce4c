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
)

// prompts are those of the program, and what is offered beside them. The program's are read when they are
// first asked for: most clients never do.
func (s *Server) prompts() []Prompt {
	all := prompts.All()
	list := make([]Prompt, 0, len(all)+len(s.offered.Prompts))
	for _, p := range all {
		listed := mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
		for _, a := range p.Arguments {
			listed.Arguments = append(listed.Arguments, mcp.PromptArgument{
				Name: a.Name, Description: a.Description, Required: a.Required,
			})
		}
		list = append(list, Prompt{listed, s.filled(p)})
	}
	return append(list, s.offered.Prompts...)
}

// filled is a prompt with its arguments put in.
func (s *Server) filled(p prompts.Prompt) func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
	return func(_ context.Context, sent map[string]string) (*mcp.GetPromptResult, error) {
		args := make(map[string]string, len(sent))
		for name, value := range sent {
			args[name] = funnel.Fence(s.visible(value, false))
		}
		text, err := p.Text(args)
		if err != nil {
			return nil, faultf(mcp.INVALID_PARAMS, "%s", err)
		}
		message := mcp.PromptMessage{Role: mcp.RoleUser, Content: mcp.NewTextContent(text)}
		return &mcp.GetPromptResult{Description: p.Description, Messages: []mcp.PromptMessage{message}}, nil
	}
}

// prompt finds one by its name, or says which there are.
func (s *Server) prompt(name string) (Prompt, *Fault) {
	all := s.prompts()
	if at := slices.IndexFunc(all, func(p Prompt) bool { return p.Name == name }); at >= 0 {
		return all[at], nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return Prompt{}, faultf(mcp.INVALID_PARAMS, "unknown prompt %s; prompts: %s", quoted(name), strings.Join(names, ", "))
}

func (s *Server) listPrompts(_ context.Context, k *call) (any, error) {
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

func (s *Server) getPrompt(ctx context.Context, k *call) (any, error) {
	var sent map[string]json.RawMessage
	name, fault := k.frame.needed("name")
	if fault == nil {
		fault = k.frame.member("arguments", &sent)
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
			return nil, faultf(mcp.INVALID_PARAMS, "%s: %s", k.frame.method, wrongType("arguments."+name, err))
		}
		args[name] = value
	}
	return p.Get(ctx, args)
}
