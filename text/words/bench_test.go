package words

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// BenchmarkEach splits the source of Go's package runtime.
func BenchmarkEach(b *testing.B) {
	out, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	expect.Must(b, err)
	var all strings.Builder
	expect.Must(b, filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src", "runtime"),
		func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	text := all.String()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Each(text, func(string, int, int) {})
	}
}
