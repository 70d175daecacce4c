package jq

import (
	"context"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq/engine"
)

// What those need who show the rows of a filter in another way than the tool.
type (
	Job     = engine.Job
	Input   = engine.WorkerInput
	Outcome = engine.Outcome
	Rows    = engine.Rows
)

// Run runs a filter in a worker process with the default limit of memory; to may want fewer rows than there are.
func Run(ctx context.Context, j Job, in Input, to Rows) (Outcome, error) {
	return engine.RunWorker(ctx, j, in, worker.MachineMemory(), 0, to, nil)
}
