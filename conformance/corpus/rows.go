package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Rows reads a file below testdata that has a JSON value in each line. The test fails if a line cannot be decoded.
func Rows[T any](t testing.TB, name string) (all []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s, line %d: %v", name, len(all)+1, err)
		}
		all = append(all, row)
	}
	return all
}
