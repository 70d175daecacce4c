package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/funnel/text/texttest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestFullPageStaysFull(t *testing.T) {
	p := New(200, func(s string) int { return len(s) }, nil)
	expect.Must(t, p.AddRow([]byte(strings.Repeat("x", 150)), tools.Call{}))
	if err := p.AddRow([]byte(strings.Repeat("x", 150)), tools.Call{}); !errors.Is(err, tools.ErrPageFull) {
		t.Fatalf("a full page: %v", err)
	}
	expect.ErrorIs(t, p.AddRow([]byte("y"), tools.Call{}), tools.ErrPageFull, "a short row is taken behind one")
}

func TestCallOfAnotherTool(t *testing.T) {
	long := strings.Repeat("é", 2000)
	// Another tool has nothing the same.
	call := tools.Call{Tool: "slice", Args: map[string]any{"source": long, "lines": "3-4"}}
	if got := describeCall(
		call,
		tools.Call{Tool: "jq", Args: json.RawMessage(`{"source":` + string(canonical(json.RawMessage(`"`+long+`"`))) + `}`)},
		600, func(string) bool { return false },
	); got != `slice with {"lines":"3-4"}, the rest as in this call` {
		t.Errorf("%.300q", got)
	}
}

// What fits is shown whole: it is never clipped, never refused, ends between two chars, and on an empty page is never
// nothing.
func TestWhatFitsAPageIsShownWhole(t *testing.T) {
	count := tokens.New(tokens.O200k).Count
	rapid.Check(t, func(t *rapid.T) {
		p := New(rapid.IntRange(policy.MinReceipt, 6000).Draw(t, "page tokens"), count, nil)
		for _, text := range rapid.SliceOfN(texttest.Outputs(), 1, 6).Draw(t, "rows") {
			text = bytes.Repeat(text, rapid.IntRange(1, 8).Draw(t, "times"))
			n := p.BytesThatFit(text)
			if n == 0 {
				if p.rowCount == 0 && len(text) > 0 {
					t.Fatalf("nothing of %.60q fits an empty page", text)
				}
				continue
			}
			before := runes.Count(text[:n])
			if before+runes.Count(text[n:]) != runes.Count(text) {
				t.Fatalf("%d tears a char of %.60q apart", n, text)
			}
			rows := p.rowCount
			if err := p.AddRow(text[:n], tools.Call{}); err != nil || p.rowCount != rows+1 || p.truncated != nil {
				t.Fatalf("%d of %d bytes fit, and then: %v, clipped %v", n, len(text), err, p.truncated)
			}
		}
		if p.usedTokens > p.maxTokens {
			t.Fatalf("%d tokens on a page of %d", p.usedTokens, p.maxTokens)
		}
	})
}

func TestAPageIsFilled(t *testing.T) {
	count := tokens.New(tokens.O200k).Count
	for _, text := range []string{
		strings.Repeat("some words of a text, ", 9000), strings.Repeat("語", 60_000), strings.Repeat("\xff\u202e", 40_000),
		strings.Repeat("words and words ", 500) + strings.Repeat("\x1b\u202e", 50_000), strings.Repeat("x", 500_000),
	} {
		p := New(4000, count, nil)
		n := p.BytesThatFit([]byte(text))
		expect.Must(t, p.AddRow([]byte(text)[:n], tools.Call{}))
		if 2*p.usedTokens < p.maxTokens && 2*p.usedChars < p.maxChars {
			t.Errorf(
				"%.20q: %d tokens and %d chars on a page of %d and %d", text, p.usedTokens, p.usedChars, p.maxTokens, p.maxChars,
			)
		}
	}
}
