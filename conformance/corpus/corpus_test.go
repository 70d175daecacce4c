package corpus_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// The diff must be one that git itself can apply to the numbers it states.
func TestDiffIsWellFormed(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), peer.Find(t, "git"), "apply", "--numstat", "-")
	cmd.Dir = t.TempDir()
	cmd.Stdin = bytes.NewReader(corpus.WarAndPeaceDiff())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "war-and-peace.txt") {
		t.Fatalf("git apply --numstat: %v\n%s", err, out)
	}
}
