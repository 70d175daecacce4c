package worker_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// BenchmarkRun measures the cost of a worker compared with a function call.
func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	worker.Layers()
	for b.Loop() {
		if err := worker.Run(b.Context(), worker.Spec{Name: "echo", In: strings.NewReader("x")}, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	const n = 64 * mib
	b.SetBytes(n)
	b.ReportAllocs()
	for b.Loop() {
		var c count
		err := worker.Run(b.Context(), worker.Spec{Name: "flood", Output: n}, &c)
		if !errors.Is(err, worker.ErrOutput) || c != n {
			b.Fatal(err, c)
		}
	}
}
