// Command mcp-funnel is an MCP server whose search and filesystem tools never
// flood the model's context: a large output is kept whole, and the model gets a
// receipt and the tools to work on it.
//
// It only wires: what a tool is, how much is shown and how the protocol is
// spoken stand in the packages it imports.
package main

import (
	"context"
	"os"
)

func main() {
	if ran, code := runWorker(os.Args); ran {
		os.Exit(code)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
