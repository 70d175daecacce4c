package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// runAsProgram is a variable with the words of a command line, one a line, that this binary runs instead of tests.
const runAsProgram = "RUN_AS_PROGRAM"

// TestMain lets this binary be the worker and the init that its tests start. Without it, each of them runs all tests.
func TestMain(m *testing.M) {
	if ran, code := worker.Main(os.Args, workers()); ran {
		os.Exit(code)
	}
	if ran, code := sandbox.Main(os.Args); ran {
		os.Exit(code)
	}
	if words, ok := os.LookupEnv(runAsProgram); ok {
		os.Exit(run(context.Background(), strings.Split(words, "\n"), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}
