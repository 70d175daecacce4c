package main

import (
	"github.com/mcp-funnel/mcp-funnel/internal/child"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

// worker runs one of this binary's own workers where the arguments ask for it.
func worker(args []string) (ran bool, code int) {
	return child.Main(args, jq.Workers())
}
