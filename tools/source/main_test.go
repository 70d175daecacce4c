package source

import (
	"os"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/system/worker/workertest"
)

func TestMain(m *testing.M) {
	os.Exit(workertest.Main(m, map[string]worker.Worker{DatabaseWorker: ReadDatabase}))
}
