package ask

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// askGo asks a question over Go's source, whose index is below a directory.
func askGo(b *testing.B, store, text string) {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	expect.Must(b, err)
	root, err := tree.Open(filepath.Join(strings.TrimSpace(string(out)), "src"))
	expect.Must(b, err)
	defer func() { _ = root.Close() }()
	q := &question{
		k: New(Options{Slice: 1 << 40, Store: store}), ctx: b.Context(), args: Args{Path: "."}, top: defaultTop,
		in:       tools.Input{Sources: source.Set{Roots: []*tree.Root{root}}},
		progress: func(int64, int64, string) {}, text: text, readAs: text, withFacts: map[*file]bool{},
	}
	expect.Must(b, q.gather())
	defer q.close()
	expect.Must(b, q.search(&Result{}))
	if c := q.places[0]; c.status.Indexed != len(c.files) || len(q.withFacts) == 0 {
		b.Errorf("%d of %d files are indexed, %d have facts", c.status.Indexed, len(c.files), len(q.withFacts))
	}
}

const ofGo = "how does the garbage collector decide when to start a cycle"

// BenchmarkFirstQuestion makes the index of Go's source.
func BenchmarkFirstQuestion(b *testing.B) {
	for b.Loop() {
		askGo(b, b.TempDir(), ofGo)
	}
}

// BenchmarkNextQuestion asks over Go's source, which is indexed: a question for one thing, one whose words most passages
// have, and one for all of something.
func BenchmarkNextQuestion(b *testing.B) {
	dir := b.TempDir()
	askGo(b, dir, ofGo)
	for _, text := range []string{ofGo, "when was go 1.5 released", "list all log levels"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				askGo(b, dir, text)
			}
		})
	}
}
