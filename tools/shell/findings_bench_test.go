package shell

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// BenchmarkFindings reads outputs with no finding, with many lines that may be one, and of tests.
func BenchmarkFindings(b *testing.B) {
	for name, text := range map[string]string{
		"prose":  string(corpus.WarAndPeace()),
		"log":    strings.Repeat("2026-11-20T14:30:22Z INFO request served method=GET path=/items/1 status=200\n", 20_000),
		"errors": strings.Repeat("2026-11-20T14:30:22Z ERROR request failed: time-out\nINFO ok\n", 10_000),
		"go -v":  strings.Repeat("=== RUN   TestA\n    a_test.go:3: error: a log\n--- PASS: TestA (0.00s)\n", 10_000),
		"js":     strings.Repeat("GET /static/app.js:1 200\nrunning job 7\n", 20_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var f findings
				for rest := []byte(text); len(rest) > 0; {
					n := min(len(rest), chunkSize)
					f.add(rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}
