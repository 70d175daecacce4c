//go:build amd64 || arm64

package sandbox_test

import (
	"os/exec"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/sandbox"
)

// BenchmarkStart compares the time of a contained `true` with that of a plain shell.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	b.Run("sh", func(b *testing.B) {
		for b.Loop() {
			_ = exec.CommandContext(b.Context(), "/bin/sh", "-c", "true").Run()
		}
	})
	for _, mode := range []sandbox.Mode{sandbox.Required, sandbox.Off} {
		b.Run(string(mode), func(b *testing.B) {
			for b.Loop() {
				runCommand(b, sandbox.Spec{Mode: mode, Mounts: []sandbox.Mount{{Source: dir, Target: dir}}}, "true")
			}
		})
	}
}
