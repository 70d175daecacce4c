package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// Extra is what a server offers beside its tools, observations and prompts: answers of any shape. It is
// served as everything else is: behind the same gate, with the same deadlines and cancellation. What it
// holds speaks to the client by Progress and Log.
type Extra struct {
	Tools     []RawTool
	Resources []Resource // listed at the head of the first page
	Templates []Template
	Prompts   []Prompt
}

// RawTool is a tool whose answer no funnel touches. It finds its arguments by [Arguments].
type RawTool struct {
	mcp.Tool
	Call func(ctx context.Context) (*mcp.CallToolResult, error)
}

// Resource is one under a URI of its own. It never changes.
type Resource struct {
	mcp.Resource
	Read func(ctx context.Context, uri string) ([]mcp.ResourceContents, error)
}

// Template is all resources whose URI is of that form.
type Template struct {
	mcp.ResourceTemplate
	Read func(ctx context.Context, uri string) ([]mcp.ResourceContents, error)
}

// Prompt is one with its texts.
type Prompt struct {
	mcp.Prompt
	Get func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error)
}

// Arguments are those of the tools/call that ctx belongs to, as they were sent: an object.
func Arguments(ctx context.Context) (json.RawMessage, error) {
	raw, fault := arguments(callOf(ctx).frame)
	if fault != nil {
		return nil, fault
	}
	return raw, nil
}

// Progress tells how far the call that ctx belongs to is, as often as it is called; what does not grow is
// not told. In a tool, [tools.Output] is the way.
func Progress(ctx context.Context, done, total int64, message string) {
	callOf(ctx).notes.progress(done, total, message)
}

// Log tells the client of the call that ctx belongs to, where it asked for messages of that level.
func Log(ctx context.Context, level mcp.LoggingLevel, logger, text string) {
	callOf(ctx).notes.log(level, logger, text)
}
