package tools_test

import (
	"math"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// FuzzSize has every text read as a number of bytes that can be counted with, or refused in few words.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"500", "10KB", "1.5MiB", " 2 g ", "1e3", "inf", "nan", "-1", "0x1p10", "9223372036854775807", "1TB", "1e400", "B", "1 K I B", "１０"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := tools.ParseSize(text)
		if n < 0 || n > math.MaxInt64/2 || err != nil && (n != 0 || len(err.Error()) > 1000) {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	})
}
