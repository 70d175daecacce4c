package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// score finds names and words for a score of how far a piece of work is. None may be built: whether a document is
// whole is decided by parsing it, and whether it is good by looking at its success criteria.
var score = regexp.MustCompile(`(?i)(completion|completeness|progress|quality|done(ness)?|readiness)[ _-]?score` +
	`|score[ _-]?(of|for)[ _-]?(completion|completeness|progress|quality)|definition[ _-]?of[ _-]?done` +
	`|(percent|percentage|fraction)[ _-]?(complete|completed|done)\b`)

// TestNoCompletionScore reads all code and all texts that a model may see. Tests are left out: they name what they
// plant.
func TestNoCompletionScore(t *testing.T) {
	read := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name := d.Name(); name == "testdata" || name == "node_modules" || name == ".git" {
				return fs.SkipDir
			}
			return nil
		case strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, filepath.Join("..", "docs")):
			return nil
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for i, line := range strings.Split(string(text), "\n") {
			if found := score.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: a score of completion must not be built", path, i+1, found)
			}
		}
		return nil
	})
	if err != nil || read < 200 {
		t.Fatalf("%d files read: %v", read, err)
	}
	for _, word := range []string{
		"completionScore", "completion_score", "Completion Score", "definition of done", "score of completeness",
		"percentComplete", "progress-score", "percent done",
	} {
		if !score.MatchString(word) {
			t.Errorf("%q is not found", word)
		}
	}
	for _, word := range []string{"completenessThreshold", "completion", "percent of the window", "sort by score"} {
		if score.MatchString(word) {
			t.Errorf("%q is taken for a score", word)
		}
	}
}
