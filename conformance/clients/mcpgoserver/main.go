// Package mcpgoserver is a minimal server made with mcp-go and its own stdio transport, to compare ours with.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	s := server.NewMCPServer("mcpgoserver", "1", server.WithToolCapabilities(false))
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("Says a text back."), mcp.WithString("text", mcp.Required())), echo)
	s.AddTool(mcp.NewTool("read", mcp.WithDescription("Reads a file."), mcp.WithString("path", mcp.Required())), read)
	if err := server.ServeStdio(s); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgoserver:", err)
		os.Exit(1)
	}
}

func echo(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	text, err := r.RequireString("text")
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(text), nil
}

func read(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	path, err := r.RequireString("path")
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return mcp.NewToolResultText(strings.ToValidUTF8(string(b), "\uFFFD")), nil
}
