package main

import (
	"os"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// TestMain lets this binary be the worker and the init that its tests start. Without it, each of them runs all tests.
func TestMain(m *testing.M) {
	if ran, code := worker.Main(os.Args, workers()); ran {
		os.Exit(code)
	}
	if ran, code := sandbox.Main(os.Args); ran {
		os.Exit(code)
	}
	os.Exit(m.Run())
}
