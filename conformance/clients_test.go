package conformance

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// The content of the clients' workspace.
const (
	clientMatches = 3000
	clientFiles   = 40
)

func clientWorkspace(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	files := map[string]string{"small.txt": "this is the small file\n", "small.json": "{}\n"}
	var lines strings.Builder
	for i := range clientMatches {
		fmt.Fprintf(&lines, "needle %d\n", i+1)
	}
	files["lines.txt"] = lines.String()
	for i := range clientFiles {
		files[filepath.Join("many", strconv.Itoa(i+1)+".txt")] = fmt.Sprintf("file %d\n", i+1)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

// clientChecks is the number of checks of each client.
const clientChecks = 10

// TestClients runs the clients of the official SDKs against the binary over every transport, at full size in both eras:
// list, call, large receipt, jq on it, resource, progress, cancel, a bad call. Each client prints one line per check.
func TestClients(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	root := clientWorkspace(t)
	clients := map[string]func(t *testing.T, ctx context.Context, args []string) *exec.Cmd{
		"go-sdk": func(t *testing.T, ctx context.Context, args []string) *exec.Cmd {
			return exec.CommandContext(ctx, program(t, "drive"), args...)
		},
		"typescript-sdk": func(t *testing.T, ctx context.Context, args []string) *exec.Cmd {
			return nodeCommand(t, ctx, "drive.mjs", args...)
		},
	}
	for name, client := range clients {
		for _, transport := range []string{"stdio", "http", "sse"} {
			for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
				if !promise.Full() && (transport == "http") != (protocol == "2026-07-28") {
					continue // make wire has the others
				}
				t.Run(name+"/"+transport+"/"+protocol, func(t *testing.T) {
					t.Parallel()
					args := []string{"--transport", transport, "--protocol", protocol, "--matches", strconv.Itoa(clientMatches)}
					// One call at a time: a call that continues after its cancellation then blocks the next one.
					serve := []string{"--root", root, "--max-calls", "1"}
					if transport == "stdio" {
						args = append(append(args, "--", binary(t)), serve...)
					} else {
						at := serveHTTP(t, serve...).url
						args = append(args, "--url", at+map[string]string{"http": "/mcp", "sse": "/sse"}[transport], "--token", testToken)
					}
					ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
					defer stop()
					cmd := client(t, ctx, args)
					cmd.Env = environment(t)
					out, err := cmd.CombinedOutput()
					t.Logf("\n%s", out)
					if n := strings.Count("\n"+string(out), "\nok "); err != nil || n != clientChecks {
						t.Errorf("%d of %d checks passed: %v", n, clientChecks, err)
					}
				})
			}
		}
	}
}
