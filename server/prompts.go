package server

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/prompts"
)

func (s *Server) addPrompts() {
	for _, p := range s.prompts {
		listed := mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
		for _, a := range p.Arguments {
			listed.Arguments = append(listed.Arguments, mcp.PromptArgument{
				Name: a.Name, Description: a.Description, Required: a.Required,
			})
		}
		s.mcp.AddPrompt(listed, s.promptHandler(p))
	}
}

func (s *Server) promptHandler(p prompts.Prompt) mcpserver.PromptHandlerFunc {
	return func(_ context.Context, request mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		args := make(map[string]string, len(request.Params.Arguments))
		for name, value := range request.Params.Arguments {
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

func (s *Server) promptNames() []string {
	names := make([]string, len(s.prompts))
	for i, p := range s.prompts {
		names[i] = p.Name
	}
	return names
}
