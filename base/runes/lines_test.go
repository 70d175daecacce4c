package runes

import (
	"io"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestLineCounter(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "\n": 1, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2, "\r\n\r": 2} {
		for cut := range len(text) + 1 {
			var c LineCounter
			_, _ = io.WriteString(&c, text[:cut])
			_, _ = io.WriteString(&c, text[cut:])
			expect.Equal(t, c.Lines(), want, "%q in two parts, cut at %d: lines", text, cut)
		}
	}
}
