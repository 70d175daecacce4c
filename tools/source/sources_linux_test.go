package source_test

import (
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// The kernel's files say that they are empty: what they hold is the source, and one without an end is none.
func TestFilesThatTellNoSize(t *testing.T) {
	root, err := tree.Open("/proc/self")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	defer func() { _ = root.Close() }()
	s := source.Set{Roots: []*tree.Root{root}}
	src, err := s.Open(t.Context(), "status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size))
	if err != nil || !strings.HasPrefix(string(text), "Name:") || int64(len(text)) != src.Size {
		t.Errorf("%d bytes of %d: %.40q %v", len(text), src.Size, text, err)
	}
	for name, want := range map[string]string{"pagemap": "reports no size", "mem": "input/output error"} {
		f, err := s.Open(t.Context(), name)
		if err == nil {
			_ = f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "/proc/") {
			t.Errorf("%s: %v, want …%s", name, err, want)
		}
	}
}
