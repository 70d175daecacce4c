package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

func TestPageIsMadeAnewBetweenItsMarks(t *testing.T) {
	proofs, markdown := filepath.Join(t.TempDir(), "proofs"), filepath.Join(t.TempDir(), "SAFETY.md")
	t.Setenv("SAFETY_PROOFS", proofs)
	promise.Kept(t, promise.Proof{Promise: "S12", Cases: 100, Control: 7, Figures: "0 torn"})
	promise.Kept(t, promise.Proof{Promise: "S12", Cases: 20, Control: 1})
	if err := os.WriteFile(markdown, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(proofs, markdown); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(markdown)
	got := string(b)
	if err != nil || !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, end+"after\n") || strings.Contains(got, "old") {
		t.Fatalf("%v\n%s", err, got)
	}
	for _, want := range []string{"| S12 | a receipt means", "| 120 | 0 | 8 | 0 torn |", "| S1 | tools never", "not proved by this run"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if strings.Index(got, "| S2 |") > strings.Index(got, "| S10 |") {
		t.Error("the promises are out of order")
	}
}

func TestPageWithoutMarksIsLeftAlone(t *testing.T) {
	if _, err := page("by hand", nil); err == nil {
		t.Error("a page without marks was overwritten")
	}
}
