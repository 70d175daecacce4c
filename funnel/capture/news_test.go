package capture

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// TestNewsAreTheRest marks an output somewhere and checks that its news are all that follows, from the beginning of the
// line in which the mark is, and that the counts are those of the whole.
func TestNewsAreTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z ]{0,40}\n`), 0, 4000).Draw(t, "lines")
		text := strings.Join(lines, "") + rapid.StringMatching(`[a-z]{0,20}`).Draw(t, "end")
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		o := Options{HeadLines: 3, TailLines: 2, Hold: 1 << 20, Counter: tokens.New(tokens.O200k)}
		if rapid.Bool().Draw(t, "masked") {
			o.Mask = secrets.New()
		}
		w := NewWriter(o)
		if rapid.Bool().Draw(t, "streams") {
			w.SplitStreams()
		}
		_, _ = w.Write([]byte(text[:at]))
		w.MarkNews()
		_, _ = w.Write([]byte(text[at:]))
		c := w.Close()
		defer c.Discard()
		all, _ := c.Beginning()
		got, whole := c.News.Beginning()
		if string(all) != text || !whole || c.Bytes != int64(len(text)) {
			t.Fatalf("%d of %d bytes", len(all), len(text))
		}
		from := strings.LastIndexByte(text[:at], '\n') + 1
		// Without a mask, a block may have ended within the line.
		if rest := text[from:]; !strings.HasSuffix(rest, string(got)) || len(got) < len(text)-at {
			t.Fatalf("marked at %d: %d bytes are new, want up to %d", at, len(got), len(rest))
		} else if at < chunkSize && string(got) != rest || c.News.Line != int64(strings.Count(text[:from], "\n")) {
			t.Fatalf("marked at %d: %d bytes from line %d, want %d", at, len(got), c.News.Line, len(rest))
		}
	})
}
