// Command mcp-funnel is an MCP server whose search and filesystem tools never flood the model's context: a large output
// is kept whole, and the model gets a receipt and the tools to work on it.
package main

import (
	"context"
	"os"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// workers are the functions that run in processes of their own.
func workers() map[string]worker.Worker {
	all := jq.Workers()
	all[source.DocumentWorker] = source.ReadDocuments
	all[source.DatabaseWorker] = source.ReadDatabase
	return all
}

func main() {
	if ran, code := shell.Main(os.Args); ran { // a command in the sandbox started this process, as funnel
		os.Exit(code)
	}
	if ran, code := worker.Main(os.Args, workers()); ran { // the server started this process as a worker
		os.Exit(code)
	}
	if ran, code := sandbox.Main(os.Args); ran { // the server started this process as the init of a sandbox
		os.Exit(code)
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
