package kinds

import (
	"bytes"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/corpus/digesttest"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

func BenchmarkDigest(b *testing.B) {
	var noise bytes.Buffer
	for noise.Len() < 4<<20 {
		noise.Write(corpus.Random(1 << 16))
	}
	for _, c := range []struct {
		name string
		kind content.Kind
		text []byte
	}{
		{"json", content.JSON, corpus.JSON5MB()},
		{"minified", content.JSON, corpus.JSON1MBMinified()},
		{"ndjson", content.NDJSON, corpus.RareKey9k()},
		{"search", content.NDJSON, digesttest.SearchHits(40_000)},
		{"diff", content.Diff, corpus.WarAndPeaceDiff()},
		{"log", content.Log, corpus.PanicLog()},
		{"table", content.Table, corpus.CSV20k()},
		{"markdown", content.Markdown, corpus.WarAndPeace()},
		{"text", content.Text, corpus.WarAndPeace()},
		{"cjk", content.Text, corpus.CJK()},
		{"binary", content.Binary, noise.Bytes()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				d := digestAs(c.kind, c.text)
				for p := c.text; len(p) > 0; {
					n := min(len(p), 32<<10)
					_, _ = d.Write(p[:n])
					p = p[n:]
				}
				d.Close()
			}
		})
	}
}
