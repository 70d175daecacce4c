package linesearch

import (
	"bytes"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// BenchmarkFirstLine compiles a pattern and looks for it in one line that holds what it needs: what a call with a new
// pattern pays before its text counts.
func BenchmarkFirstLine(b *testing.B) {
	text := []byte("2026-11-01T00:00:00.881Z ERROR status=501 took=2354ms IOError x refused y timeout 123456ab7\n")
	for _, expr := range []string{"deadline exceeded", "panic:|timeout", "status=5[0-9]{2}", `\w+ refused \w+`,
		`\btimeout\b`, "[0-9]{6}[a-f]{2}[0-9]", `\p{Cyrillic}{3}`, "(?i)straße|[[:upper:]]{3}"} {
		b.Run(expr, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := compile(Pattern{Expr: expr})
				expect.Must(b, err)
				if _, err := m.Scan(b.Context(), bytes.NewReader(text), Options{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
