package server

import (
	"os"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
)

// TestMain lets this test binary be a worker of jq, as the program is.
func TestMain(m *testing.M) {
	if ran, code := worker.Main(os.Args, jq.Workers()); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
