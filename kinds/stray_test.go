package kinds

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/table"
)

// A quote that nobody closes costs as many rows here as it does for kinds.Records, by which slice counts.
func TestStrayQuote(t *testing.T) {
	promise.OrdinaryRun(t)
	for _, size := range []int{1000, table.MaxQuoted - 20, table.MaxQuoted + 20, 3 * table.MaxQuoted} {
		text := "a,b\n1,2\n3,\"4\n" + strings.Repeat("5,6\n", size/4) + "7,8\n"
		want, err := recordsOf(t, content.Table, []byte(text))
		if !errors.As(err, new(*content.Remarks)) {
			t.Fatal(err)
		}
		for _, step := range []int{len(text), 4096, 7} {
			d := digestAs(content.Table, []byte(text))
			for rest := []byte(text); len(rest) > 0; rest = rest[min(step, len(rest)):] {
				_, _ = d.Write(bytes.Clone(rest[:min(step, len(rest))]))
			}
			if got := d.Close().Records; got != want {
				t.Errorf("%d bytes after the quote, %d at a time: %d rows, content has %d", size, step, got, want)
			}
		}
	}
}
