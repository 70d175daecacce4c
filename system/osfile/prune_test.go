package osfile

import (
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestPrune removes by age, then the least recently changed files over the size, and nothing for an hour after that.
func TestPrune(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stamp  time.Duration // age of the mark that the last run left; 0: there is no mark
		size   int64
		remain []string
	}{
		{"by age", 0, math.MaxInt64, []string{"a", "b", "c"}},
		{"by size", 0, 25, []string{"a", "b"}},
		{"two hours later", 2 * time.Hour, 15, []string{"a"}},
		{"half an hour later", time.Hour / 2, 15, []string{"a", "b", "c", "old"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := expect.Value(os.OpenRoot(t.TempDir()))(t)
			defer func() { _ = dir.Close() }()
			write := func(name string, age time.Duration) {
				at := time.Now().Add(-age)
				expect.Must(t, dir.WriteFile(name, make([]byte, 10), 0o600))
				expect.Must(t, dir.Chtimes(name, at, at))
			}
			write("a", time.Minute)
			write("b", 2*time.Minute)
			write("c", 3*time.Minute)
			write("old", 48*time.Hour)
			if tt.stamp > 0 {
				write("pruned", tt.stamp)
			}
			Prune(dir, 24*time.Hour, tt.size)
			entries := expect.Value(fs.ReadDir(dir.FS(), "."))(t)
			var remain []string
			for _, e := range entries {
				if e.Name() != "pruned" {
					remain = append(remain, e.Name())
				}
			}
			if !slices.Equal(remain, tt.remain) || len(entries) != len(remain)+1 {
				t.Errorf("%q remain, want %q", remain, tt.remain)
			}
		})
	}
}
