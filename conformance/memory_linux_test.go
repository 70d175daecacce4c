package conformance

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// overIdle is what calls may take the server process over what it holds idle.
const overIdle = 256 << 20

// glutton is an input, and the calls that would take all of it into memory in a program that reads files whole.
type glutton struct {
	name  string
	calls []shape
}

func on(source string) []shape {
	return []shape{
		{"read", map[string]any{"path": source}},
		{"search", map[string]any{"path": source, "pattern": "needle"}},
		{"search", map[string]any{"path": source, "pattern": `(?i)need\w+\s*$`, "multiline": true}},
		{"grep", map[string]any{"source": source, "pattern": "needle"}},
		{"grep", map[string]any{"source": source, "pattern": "needle", "invert": true, "save": true}},
		{"slice", map[string]any{"source": source, "lines": "1"}},
		{"slice", map[string]any{"source": source, "chars": "-10"}},
		{"slice", map[string]any{"source": source, "records": "3"}},
		{"slice", map[string]any{"source": source, "at": "/3"}},
		{"jq", map[string]any{"source": source, "filter": "length"}},
		{"jq", map[string]any{"source": source, "filter": "length", "text": true, "slurp": true}},
		{"find", map[string]any{"path": source, "show": "stat"}},
	}
}

// gluttons makes the inputs below a root.
func gluttons(t testing.TB, root string) []glutton {
	t.Helper()
	at := func(name string) string { return filepath.Join(root, name) }
	line := promise.Size(int64(384<<20), 1<<30)
	sparse(t, at("line.txt"), line, strings.Repeat("begin ", 20_000))
	sparse(t, at("tib.bin"), 1<<40, "")
	elements := promise.Size(1_000_000, 4_000_000) // each takes some 100 bytes where it is decoded
	lines := promise.Size(80_000, 800_000)
	for name, text := range map[string][]byte{
		"empties.json": append(append([]byte("["), bytes.Repeat([]byte("[],"), elements)...), "[]]"...),
		"lines.txt":    bytes.Repeat([]byte("a line of a hundred bytes, of which every one matches what is looked for, so that all of it is shown\n"), lines),
	} {
		if err := os.WriteFile(at(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := promise.Size(10_000, 1_000_000)
	for i := range files {
		if i%1000 == 0 {
			if err := os.MkdirAll(at(fmt.Sprintf("files/%04d", i/1000)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(at(fmt.Sprintf("files/%04d/a file among many %d.txt", i/1000, i)))
		if err != nil {
			t.Skipf("no %d files can be made here: %v", files, err)
		}
		_ = f.Close()
	}
	many := []shape{{"read", map[string]any{"path": "files/**"}}, {"search", map[string]any{"path": "files", "pattern": "x", "show": "counts"}}}
	for _, show := range []string{"list", "tree", "count", "stat"} {
		many = append(many, shape{"find", map[string]any{"path": "files", "show": show}})
	}
	for _, sort := range []string{"size", "modified"} {
		many = append(many, shape{"find", map[string]any{"path": "files", "sort": sort}})
	}
	output := []shape{
		{"search", map[string]any{"path": "lines.txt", "pattern": "line"}},
		{"search", map[string]any{"path": "lines.txt", "pattern": "line", "context": 20}},
		{"grep", map[string]any{"source": "lines.txt", "pattern": "line", "save": true}},
		{"jq", map[string]any{"source": "lines.txt", "filter": "., .", "text": true, "save": true}},
		{"jq", map[string]any{"source": "lines.txt", "filter": ".", "text": true, "slurp": true, "save": true}},
		{"jq", map[string]any{"source": "lines.txt", "filter": `"x" * 100000000`, "text": true, "limit": 1}},
	}
	all := []glutton{
		{fmt.Sprintf("a line of %d MiB", line>>20), on("line.txt")}, {"1 TiB, sparse", on("tib.bin")}, {fmt.Sprintf("%d files", files), many},
		{fmt.Sprintf("JSON of %d empty arrays", elements), on("empties.json")}, {fmt.Sprintf("output of over %d MB", lines/10_000), output},
	}
	var once []shape
	for _, g := range all {
		for i := range g.calls {
			if i%3 == 0 {
				once = append(once, g.calls[i])
			}
		}
	}
	for range 4 { // those that hold most
		once = append([]shape{many[len(many)-1], many[len(many)-2], all[0].calls[2]}, once...)
	}
	return append(all, glutton{atOnce, once})
}

// atOnce is the last of the gluttons: calls on all the others, of which sixteen run together.
const atOnce = "16 at once"

func TestS5MemoryStaysBounded(t *testing.T) {
	drivesOnly(t)
	if testing.Short() && !promise.Full() {
		t.Skip("memory is measured in the ordinary run: skipped with -short")
	}
	root := t.TempDir()
	deadline := promise.Size(200*time.Millisecond, 10*time.Second)
	all := gluttons(t, root)
	cases, failures := 0, 0
	var figures []string
	for _, g := range all {
		if !promise.Full() && g.name != atOnce { // every other call, another half of each input's
			for i := range len(g.calls) / 2 {
				g.calls[i] = g.calls[2*i+len(figures)%2]
			}
			g.calls = g.calls[:len(g.calls)/2]
		}
		s := serveStdio(t, root, "--call-timeout", deadline.String(), "--quota", "600MiB")
		warm := func() bool { // the deadline of calls may be too short for the first on a busy machine
			a, err := s.call("find", map[string]any{"path": "lines.txt"})
			return err == nil && !a.failed
		}
		if !waitFor(starts, warm) {
			t.Fatalf("a first call fails for %s", starts)
		}
		s.limit = deadline + time.Minute
		idle := s.peak()
		at := 1
		if g.name == atOnce {
			at = 16
		}
		cases += len(g.calls)
		for _, f := range glut(s, g.calls, at) {
			failures++
			t.Errorf("%s: %s", g.name, f)
		}
		took := s.peak() - idle
		if took > overIdle {
			failures++
			t.Errorf("%s: %d MiB over idle (%d MiB)", g.name, took>>20, idle>>20)
		}
		figures = append(figures, fmt.Sprintf("%s +%d MiB", g.name, took>>20))
		s.kill()
	}

	// The control: a reader that takes the same line whole.
	f, err := os.Open(filepath.Join(root, "line.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	before, control := freshPeak(t), 0
	b, err := io.ReadAll(f)
	if err != nil || len(b) == 0 {
		t.Fatal(err)
	}
	if ownPeak(t)-before > overIdle {
		control++
	}
	debug.FreeOSMemory()
	promise.Kept(t, promise.Proof{Promise: "S5", Cases: cases, Failures: failures, Control: control, Figures: strings.Join(figures, ", ")})
}

// glut makes calls, so many at once, and says which had no answer.
func glut(s *stdioClient, calls []shape, at int) (failures []string) {
	var mu sync.Mutex
	var all sync.WaitGroup
	gate := make(chan struct{}, at)
	for _, c := range calls {
		gate <- struct{}{}
		all.Go(func() {
			defer func() { <-gate }()
			if _, err := s.call(c.tool, c.args); err != nil {
				mu.Lock()
				failures = append(failures, fmt.Sprintf("%s %v: %v", c.tool, c.args, err))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return failures
}

// freshPeak lets the peak of this process begin anew: tests before this one may have held more.
func freshPeak(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // proc_pid_clear_refs(5)
		t.Logf("the peak cannot be set back: %v", err)
	}
	return ownPeak(t)
}

func ownPeak(t testing.TB) int64 {
	t.Helper()
	n, ok := highWater(os.Getpid())
	if !ok {
		t.Fatal("/proc does not say how much memory this process held")
	}
	return n
}
