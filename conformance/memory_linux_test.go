package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// overIdle is the maximum memory of the server process during calls, over its idle memory.
const overIdle = 256 << 20

// glutton is an input, with calls that would load all of it into memory in a program that reads files whole.
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

// across has calls on whole directories.
func across(dir string) []shape {
	all := []shape{
		{"read", map[string]any{"path": dir + "/**"}},
		{"search", map[string]any{"path": dir, "pattern": "x", "show": "counts"}},
	}
	for _, show := range []string{"list", "tree", "count", "stat"} {
		all = append(all, shape{"find", map[string]any{"path": dir, "show": show}})
	}
	for _, sort := range []string{"size", "modified"} {
		all = append(all, shape{"find", map[string]any{"path": dir, "sort": sort}})
	}
	return all
}

// gluttons makes the inputs below a root.
func gluttons(t testing.TB, root string) []glutton {
	t.Helper()
	at := func(name string) string { return filepath.Join(root, name) }
	line := promise.Size(int64(384<<20), 1<<30)
	sparse(t, at("line.txt"), line, strings.Repeat("begin ", 20_000))
	sparse(t, at("tib.bin"), 1<<40, "")
	elements := promise.Size(500_000, 4_000_000) // each takes some 100 bytes where it is decoded
	lines := promise.Size(80_000, 1_000_000)
	for name, text := range map[string][]byte{
		"empties.json": append(append([]byte("["), bytes.Repeat([]byte("[],"), elements)...), "[]]"...),
		"lines.txt": bytes.Repeat(
			[]byte("a line of a hundred bytes, of which every one matches what is looked for, so that all of it is shown\n"),
			lines,
		),
	} {
		write(t, at(name), string(text))
	}
	files := promise.Size(4_000, 1_000_000)
	for i := range files {
		if i%1000 == 0 {
			expect.Must(t, os.MkdirAll(at(fmt.Sprintf("files/%04d", i/1000)), 0o700))
		}
		f, err := os.Create(at(fmt.Sprintf("files/%04d/a file among many %d.txt", i/1000, i)))
		if err != nil {
			t.Skipf("no %d files can be made here: %v", files, err)
		}
		_ = f.Close()
	}
	many := across("files")
	flat := promise.Size(8_000, 500_000) // in one directory, by long names
	expect.Must(t, os.Mkdir(at("flat"), 0o700))
	for i := range flat {
		if err := os.WriteFile(at(fmt.Sprintf("flat/%d %s", i, strings.Repeat("n", 240))), nil, 0o600); err != nil {
			t.Skipf("no %d files can be made here: %v", flat, err)
		}
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
		{fmt.Sprintf("a line of %d MiB", line>>20), on("line.txt")},
		{"1 TiB, sparse", on("tib.bin")},
		{fmt.Sprintf("%d files", files), many},
		{fmt.Sprintf("%d in one directory", flat), across("flat")},
		{fmt.Sprintf("JSON of %d empty arrays", elements), on("empties.json")},
		{fmt.Sprintf("output of over %d MB", lines/10_000), output},
	}
	var once []shape
	for _, g := range all {
		for i := range g.calls {
			if i%3 == 0 {
				once = append(once, g.calls[i])
			}
		}
	}
	for i := range 4 { // those that hold most
		once = append([]shape{many[len(many)-1], many[len(many)-2], all[0].calls[2], across("flat")[i]}, once...)
	}
	return append(all, glutton{atOnce, once})
}

// atOnce has calls on all other gluttons, sixteen of them at a time.
const atOnce = "16 at once"

func TestS5MemoryStaysBounded(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
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
		cases += len(g.calls)
		took, unanswered := g.feed(t, binary(t), root, deadline)
		for _, f := range unanswered {
			failures++
			t.Errorf("%s: %s", g.name, f)
		}
		if took > overIdle {
			failures++
			t.Errorf("%s: %d MiB over idle", g.name, took>>20)
		}
		figures = append(figures, fmt.Sprintf("%s +%d MiB", g.name, took>>20))
	}

	control := 0
	took, _ := glutton{calls: all[0].calls[:2]}.feed(t, greedy.binary(t), root, 10*time.Second)
	if took > overIdle {
		control++
	}
	figures = append(figures, fmt.Sprintf("control: files read whole, +%d MiB", took>>20))
	promise.Keptf(t, promise.Proof{Promise: "S5", Cases: cases, Failures: failures, Control: control},
		"%s", strings.Join(figures, ", "))
}

// feed makes the calls on a new server and returns their memory over the idle memory, and the calls without an answer.
func (g glutton) feed(t testing.TB, program, root string, deadline time.Duration) (took int64, failures []string) {
	t.Helper()
	s := launch{
		program: program,
		env:     append(environment(t), "GOMEMLIMIT=3GiB"),
		flags:   []string{"--root", root, "--min-free", "0", "--call-timeout", deadline.String(), "--quota", "600MiB"},
	}.stdio(t)
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
	failures = glut(s, g.calls, at)
	took = s.peak() - idle
	s.kill()
	return took, failures
}

// glut makes calls concurrently and returns those without an answer.
func glut(s *stdioClient, calls []shape, at int) (failures []string) {
	var mu sync.Mutex
	concurrently(at, calls, func(c shape) {
		if _, err := s.call(c.tool, c.args); err != nil {
			mu.Lock()
			failures = append(failures, fmt.Sprintf("%s %v: %v", c.tool, c.args, err))
			mu.Unlock()
		}
	})
	return failures
}
