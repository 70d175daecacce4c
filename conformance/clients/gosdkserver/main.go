// Package gosdkserver is a minimal server made with the official Go SDK, to compare ours with.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gosdkserver:", err)
		os.Exit(1)
	}
}

// run serves stdio, or streamable HTTP at /mcp if an address is given.
func run(ctx context.Context, args []string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdkserver", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says a text back."}, echo)
	mcp.AddTool(s, &mcp.Tool{Name: "read", Description: "Reads a file."}, read)
	switch len(args) {
	case 0:
		return s.Run(ctx, &mcp.StdioTransport{})
	case 1:
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", args[0])
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "listening on", l.Addr())
		mux := http.NewServeMux()
		mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		return (&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}).Serve(l)
	}
	return errors.New("usage: gosdkserver [ADDR]")
}

type echoArgs struct {
	Text string `json:"text" jsonschema:"said back"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, a echoArgs) (*mcp.CallToolResult, any, error) {
	return text(a.Text), nil, nil
}

type readArgs struct {
	Path string `json:"path" jsonschema:"file"`
}

func read(_ context.Context, _ *mcp.CallToolRequest, a readArgs) (*mcp.CallToolResult, any, error) {
	b, err := os.ReadFile(a.Path)
	if err != nil {
		return nil, nil, err
	}
	return text(strings.ToValidUTF8(string(b), "\uFFFD")), nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
