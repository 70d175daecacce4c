package corpus_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

func TestCorpusIsWhatItSays(t *testing.T) {
	if n := len(corpus.WarAndPeace()); n != 3293615 {
		t.Errorf("novel: %d bytes", n)
	}
	texts := map[string][]byte{
		"1MB": corpus.JSON1MB(), "minified": corpus.JSON1MBMinified(), "5MB": corpus.JSON5MB(),
	}
	for name, b := range texts {
		if !json.Valid(b) {
			t.Errorf("%s is not JSON", name)
		}
	}
	if n := len(corpus.JSON5MB()); n < 4_500_000 {
		t.Errorf("5MB: %d bytes", n)
	}
	lines := bytes.Split(bytes.TrimSuffix(corpus.PanicLog(), []byte("\n")), []byte("\n"))
	if len(lines) != 100_000 || !bytes.HasPrefix(lines[corpus.PanicLine-1], []byte("panic: ")) {
		t.Errorf("log: %d lines, at the panic's: %s", len(lines), lines[corpus.PanicLine-1])
	}
	if n := bytes.Count(corpus.RareKey9k(), []byte("legacy_ref")); n != 1 {
		t.Errorf("rare key: %d times", n)
	}
}

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
