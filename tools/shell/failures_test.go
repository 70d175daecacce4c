package shell

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the findings in testdata")

// TestFailedTests compares the findings in outputs of test runners and of node, as these programs wrote them, with
// those that testdata holds: each failed test with name, place and message, and nothing that a passing test printed.
func TestFailedTests(t *testing.T) {
	files, err := filepath.Glob("testdata/failed/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".txt") + ".want"
			for _, size := range []int{len(text), 1, 100} {
				var f findings
				for block := range slices.Chunk(text, size) {
					f.add(block)
				}
				got := strings.Join(f.close(), "\n") + "\n"
				if *update {
					err = os.WriteFile(golden, []byte(got), 0o600)
				}
				want, _ := os.ReadFile(golden)
				if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
					t.Errorf("blocks of %d: %v (-want +got)\n%s", size, err, diff)
				}
			}
		})
	}
}

// FuzzFindings reads any text in blocks: the findings are those of the text in one block, and are bounded.
func FuzzFindings(f *testing.F) {
	files, _ := filepath.Glob("testdata/failed/*.txt")
	for i, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text), i+1)
		}
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			t.Skip("blocks have a size")
		}
		var whole, blocks findings
		whole.add([]byte(text))
		for block := range slices.Chunk([]byte(text), size) {
			blocks.add(block)
		}
		want := whole.close()
		if diff := cmp.Diff(want, blocks.close()); diff != "" {
			t.Errorf("blocks of %d (-one +blocks)\n%s", size, diff)
		}
		if size := len(strings.Join(want, "\n")); size > 64<<10 {
			t.Errorf("%d bytes of findings", size)
		}
	})
}
