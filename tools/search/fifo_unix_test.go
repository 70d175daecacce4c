//go:build unix

package search

import (
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func fifo(t *testing.T, path string) {
	t.Helper()
	expect.Must(t, syscall.Mkfifo(path, 0o644))
}
