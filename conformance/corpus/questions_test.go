package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestQuestions checks that the places that answer the questions are there. Those of Go's source are looked at by
// tests that ask it.
func TestQuestions(t *testing.T) {
	dir, count := t.TempDir(), map[string]int{}
	trees := QuestionTrees(t, dir)
	for _, q := range Questions(t) {
		count[q.Kind]++
		if q.Tree == "go" {
			continue
		}
		if !slices.Contains(trees, q.Tree) || len(q.Gold) == 0 {
			t.Errorf("%s: tree %q, %d answers", q.ID, q.Tree, len(q.Gold))
		}
		for _, a := range q.Gold {
			text, err := os.ReadFile(filepath.Join(dir, q.Tree, a.File))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(string(text), "\n")
			if a.To < a.From || a.To > len(lines) || !strings.Contains(strings.Join(lines[a.From-1:a.To], "\n"), a.Has) {
				t.Errorf("%s: %s:%d-%d has not %q", q.ID, a.File, a.From, a.To, a.Has)
			}
		}
	}
	if count["natural"] != 111 || count["paraphrase"] != 89 {
		t.Errorf("%v", count)
	}
}
