package main

import (
	"strings"
	"testing"
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
