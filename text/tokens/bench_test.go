package tokens_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// BenchmarkTally counts 1 GiB of log as it is written, 16 MiB of it exactly, and those 16 MiB alone. B/op is the memory
// it allocates.
func BenchmarkTally(b *testing.B) {
	c := tokens.New(tokens.O200k)
	log := bytes.Repeat(corpus.PanicLog(), 1+(8<<20)/len(corpus.PanicLog()))[:8<<20]
	for name, size := range map[string]int{"16MiB": tokens.ExactLimit, "1GiB": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				t := c.Tally()
				for range size / len(log) {
					for p := range slices.Chunk(log, 256<<10) {
						_, _ = t.Write(p) // never fails
					}
				}
				t.Total()
			}
		})
	}
}
