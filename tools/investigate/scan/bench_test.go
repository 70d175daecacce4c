package scan

import (
	"runtime"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// BenchmarkScan scans Go's own source.
func BenchmarkScan(b *testing.B) {
	root, err := tree.Open(runtime.GOROOT()) //nolint:staticcheck // the source of the toolchain that runs the test
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	counter := tokens.New(tokens.O200k)
	for b.Loop() {
		o := Options{All: true, Count: func(t []byte) int { return counter.Count(string(t)) }}
		if _, err := Scan(b.Context(), root, ".", o); err != nil {
			b.Fatal(err)
		}
	}
}
