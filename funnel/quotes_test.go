package funnel

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

var shownBelow = regexp.MustCompile(`(?m)^(?:first error, |last error, |stands out, )?line (\d+), shown below`)

// The receipt quotes a remarkable line once: if head or tail shows the line, the finding gives only its number.
func TestALineThatStandsOutIsShownOnce(t *testing.T) {
	pointed := 0
	f := funnelOf(t, Options{Store: nil})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(60, 400).Draw(t, "lines")
		bad := map[int]bool{}
		for range rapid.IntRange(1, 4).Draw(t, "bad") {
			bad[rapid.OneOf(rapid.IntRange(0, n-1), rapid.IntRange(0, 9), rapid.IntRange(n-5, n-1)).Draw(t, "at")] = true
		}
		odd := rapid.IntRange(0, n-1).Draw(t, "odd")
		pad := strings.Repeat(" and so on", rapid.IntRange(0, 30).Draw(t, "pad"))
		var lines []string
		for i := range n {
			text := fmt.Sprintf("2026-01-01T00:00:00Z INFO served request number=%d%s", i, pad)
			switch {
			case bad[i]:
				text = fmt.Sprintf("2026-01-01T00:00:00Z ERROR cannot reach shard=%d%s", i, pad)
			case i == odd:
				text = fmt.Sprintf("2026-01-01T00:00:00Z WARN clock went backwards%s", pad)
			}
			lines = append(lines, text)
		}
		a, err := f.Call(context.Background(), Request{
			Args: []byte(`{}`), Tool: tool(tools.Tool{}, writes([]byte(strings.Join(lines, "\n")+"\n"))),
			Limits: Limits{ReceiptTokens: rapid.IntRange(160, 1500).Draw(t, "ceiling")},
		})
		expect.Must(t, err)
		receipt := texted(a)
		for i := range lines {
			words := fmt.Sprintf("shard=%d", i)
			if bad[i] && len(regexp.MustCompile(words+`\b`).FindAllString(receipt, -1)) > 1 && pad == "" {
				t.Fatalf("line %d stands twice in\n%s", i+1, receipt)
			}
		}
		for _, m := range shownBelow.FindAllStringSubmatch(receipt, -1) {
			pointed++
			at, _ := strconv.Atoi(m[1])
			if !strings.Contains(receipt, "\n"+lines[at-1]+"\n") {
				t.Fatalf("line %d is said to be shown in\n%s", at, receipt)
			}
		}
	})
	if pointed == 0 {
		t.Error("no line that stands out was in head or tail")
	}
}

func TestAHunkHeaderIsShownOnce(t *testing.T) {
	var diff strings.Builder
	for i := range 12 {
		fmt.Fprintf(
			&diff,
			"diff --git a/f%[1]d.go b/f%[1]d.go\n--- a/f%[1]d.go\n+++ b/f%[1]d.go\n@@ -%[2]d,2 +%[2]d,3 @@ func f%[1]d() {\n a%[3]s\n+b%[3]s\n c%[3]s\n",
			i, 10+i, strings.Repeat(" of many words", 20),
		)
	}
	a := answered(
		t, funnelOf(t, Options{}),
		Request{Tool: tool(tools.Tool{}, writes([]byte(diff.String()))), Limits: Limits{ReceiptTokens: 1500}},
	)
	receipt := texted(a)
	for i := range 12 {
		header := fmt.Sprintf("@@ -%[2]d,2 +%[2]d,3 @@ func f%[1]d() {", i, 10+i)
		expect.Equal(t, strings.Count(receipt, header), 1, "%q stands, times in %s", header, receipt)
		if !strings.Contains(receipt, fmt.Sprintf("\n/%d/hunks/0: f%d.go @@", i, i)) {
			t.Errorf("hunk %d is not listed in\n%s", i, receipt)
		}
	}
}
