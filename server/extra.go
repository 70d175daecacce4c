package server

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"
)

// What is offered through [Options.Extra] is served as everything else: behind the same gate, with the
// same deadlines and cancellation. Its handlers speak to the client by Progress and Log, never by mcp-go's
// own notifications, which come late or not at all, and find a tool's arguments by Arguments: mcp-go does
// not get to see them.

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
