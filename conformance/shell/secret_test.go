package shell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestSecretsOfBothStreams writes a token of which the other stream cuts the line in two. No part of it may be shown,
// whether the output is shown whole or as a receipt. The control shows what the scan of both streams as one text let
// through.
func TestSecretsOfBothStreams(t *testing.T) {
	t.Parallel()
	const first, second = "gh" + "p_PbmhJSUBO7u7", "vmYOuRr86uW1x2Y3z4A5b6C7"
	merged := first + "a message\n" + second + "\n"
	if shown, n := secrets.New().String(merged); n > 0 || !strings.Contains(shown, second) {
		t.Fatalf("control: one scan masks it: %s", shown)
	}
	for _, c := range []struct{ name, to, other, behind string }{
		{"standard output", "1", "2", "true"},
		{"standard error", "2", "1", "true"},
		{"a receipt", "1", "2", "seq 100000"},
		{"a receipt of standard error", "2", "1", "seq 100000; exit 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, shell.Options{})
			b.f = expect.Value(funnel.New(funnel.Options{Store: b.store, Mask: secrets.New()}))(t)
			text, answer := b.run(fmt.Sprintf(
				"printf %s >&%s; sleep .05; echo a message >&%s; sleep .05; echo %s >&%s; sleep .05; %s",
				first, c.to, c.other, second, c.to, c.behind,
			))
			expect.Lacks(t, text, second[:12], first[4:])
			expect.Contains(t, text, "a message", "[masked: github-token")
			if c.behind == "true" {
				return
			}
			if _, stored := b.stored(answer); !strings.HasPrefix(stored, merged) {
				t.Errorf("stored: %.100s", stored)
			}
		})
	}
}
