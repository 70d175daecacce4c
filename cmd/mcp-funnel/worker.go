package main

import (
	"github.com/mcp-funnel/mcp-funnel/internal/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

// runWorker runs one of this binary's own workers where the arguments ask for it.
func runWorker(args []string) (ran bool, code int) {
	return worker.Main(args, jq.Workers())
}
