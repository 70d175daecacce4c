package main

import (
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/session/stats"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// TestStatsOfNotices checks that stats counts outputs that were not shown, and does not claim that each of them is
// kept: a page of a file is not stored.
func TestStatsOfNotices(t *testing.T) {
	s := newServed(t)
	out := s.search(`{"funnel/usage":{"prompt_tokens":19900,"window":20000}}`)
	if !strings.Contains(out, "context full") {
		t.Fatalf("%.300s", out)
	}
	code, shown, complaints := try(t, "stats", "--store", s.store)
	if want := "outputs not shown, because the client reported a full context: 1\n"; code != done ||
		!strings.Contains(shown, want) {
		t.Errorf("code %d: %s%s", code, shown, complaints)
	}
}

// TestStatsOfOneCommand checks that stats names the command that saw most and its share, which is rounded down.
func TestStatsOfOneCommand(t *testing.T) {
	sum := stats.New()
	for _, c := range []trace.Call{
		{Tool: "run", Name: "yes head", SeenTokens: 99_900}, {Tool: "run", Name: "go", SeenTokens: 60},
		{Tool: "grep", SeenTokens: 40},
	} {
		sum.Add(c)
	}
	var out strings.Builder
	expect.Must(t, writeStats(&cli.Streams{Out: &out}, sum.Report(0)))
	const want = "\nlargest command: run yes head (1 call): 99 % of all tokens seen, 99900 of 100000\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %s", want, out.String())
	}
}
