package fs

import (
	"os"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

func TestMain(m *testing.M) {
	os.Exit(workertest.Main(m, map[string]worker.Worker{source.DatabaseWorker: source.ReadDatabase}))
}
