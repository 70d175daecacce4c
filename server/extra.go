package server

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// Extra holds additional tools, resources and prompts with results of any shape. The server applies the same limits,
// deadlines and cancellation to them. Their functions send notifications with [Progress] and [Log].
type Extra struct {
	Tools     []RawTool
	Resources []Resource // listed before the observations
	Templates []Template
	Prompts   []Prompt
}

// RawTool is a tool that bypasses the funnel: its result is sent unchanged. Call gets its arguments from [Arguments].
type RawTool struct {
	mcp.Tool
	Call func(ctx context.Context) (any, error) // a [*mcp.CallToolResult], or JSON
}

// Resource is a resource with a fixed URI. It never changes.
type Resource struct {
	mcp.Resource
	Read func(ctx context.Context, uri string) ([]mcp.ResourceContents, error)
}

// Template serves all resources whose URI matches the template.
type Template struct {
	mcp.ResourceTemplate
	Read func(ctx context.Context, uri string) ([]mcp.ResourceContents, error)
}

// Prompt is a prompt and the function that returns its messages.
type Prompt struct {
	mcp.Prompt
	Get func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error)
}

// Arguments returns the arguments of the tools/call of ctx as sent: a JSON object, {} if there are none.
func Arguments(ctx context.Context) (json.RawMessage, error) {
	raw, fault := arguments(callOf(ctx).frame)
	if fault != nil {
		return nil, fault
	}
	return raw, nil
}

// InputResponses returns the client's replies to the requests of an earlier result "input required", by name, and the
// request state of that result. There are none in the first round and in the sessions era.
func InputResponses(ctx context.Context) (responses mcp.InputResponses, state string, err error) {
	f := callOf(ctx).frame
	if !f.Stateless() {
		return nil, "", nil
	}
	if fault := cmp.Or(f.Param("requestState", &state), f.Param("inputResponses", &responses)); fault != nil {
		return nil, "", fault
	}
	return responses, state, nil
}

// Progress reports the progress of the call of ctx each time it is called; values that do not grow are ignored.
// Tools of package tools report progress through [tools.Output] instead.
func Progress(ctx context.Context, done, total int64, message string) {
	callOf(ctx).notes.Progress(done, total, message)
}

// Log sends the client a log message about the call of ctx, if the client asked for messages of this level.
func Log(ctx context.Context, level mcp.LoggingLevel, logger, text string) {
	callOf(ctx).notes.Log(level, logger, text)
}
