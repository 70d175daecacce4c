// Package replicas runs several servers behind a balancer, on one Postgres and one S3 server: real processes, over
// HTTP.
package replicas

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if promise.UnderRace {
		fmt.Println("these tests drive programs that are built without the race detector: tried by the run without it")
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "6") // most of these tests wait for processes
	ctx, cancel := context.WithCancel(context.Background())
	gateway = sync.OnceValues(func() (string, error) { return buildGateway(ctx) })
	if !testing.Short() {
		go func() { _, _ = gateway() }() // the tests that need it are the last ones
	}
	code := built.Main(m)
	cancel()
	os.Exit(code)
}

// gateway returns the path of versitygw.
var gateway func() (string, error)

// buildGateway builds versitygw into the cache of the go command, after everything else that wants a processor.
func buildGateway(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", "go", "-C", "../s3", "tool", "-n", "versitygw")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var errs strings.Builder
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %.500s", err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}
