package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// slack is the maximum time of a call over its deadline: at full size half a second, as promised. An ordinary run may
// be on a busy machine, so its slack only separates a late end from none; the figures have the measured times.
func slack() time.Duration { return promise.Size(promise.HangAfter, 500*time.Millisecond) }

// shape is one call that may take long.
type shape struct {
	tool string
	args map[string]any
}

// slowShapes returns calls that take long or never end without a deadline: the expensive cases of the corpus of bad
// inputs, each with every kind of input that makes it expensive.
func slowShapes(t testing.TB) (all []shape) {
	t.Helper()
	add := func(tool string, args map[string]any) { all = append(all, shape{tool, args}) }
	for _, c := range badCases(t, "programs") {
		add("jq", map[string]any{"source": "null.json", "filter": c.Text.String()})
		if c.Slow {
			add("jq", map[string]any{"source": "list.json", "filter": c.Text.String(), "save": true})
			add("jq", map[string]any{"source": "list.json", "filter": ".[] | " + c.Text.String(), "limit": 1})
		}
	}
	for _, c := range badCases(t, "patterns") {
		for _, source := range []string{"long.txt", "deep.json", "sparse.bin"} {
			add("grep", map[string]any{"source": source, "pattern": c.Text.String()})
		}
		add("search", map[string]any{"path": ".", "pattern": c.Text.String(), "multiline": true})
	}
	for _, c := range badCases(t, "globs") {
		add("find", map[string]any{"glob": c.Text.String(), "show": "stat"})
	}
	for _, source := range []string{"sparse.bin", "line.txt", "deep.json", "grown.json", "long.txt"} {
		add("slice", map[string]any{"source": source, "lines": "-1"})
		add("slice", map[string]any{"source": source, "chars": "-1"})
		add("slice", map[string]any{"source": source, "records": "1000000000"})
		add("slice", map[string]any{"source": source, "at": "/a/b/c"})
		add("read", map[string]any{"path": source})
		add("jq", map[string]any{"source": source, "filter": "length"})
		add("jq", map[string]any{"source": source, "filter": "length", "text": true, "slurp": true})
		add("search", map[string]any{"path": source, "pattern": "x", "show": "counts"})
		add("grep", map[string]any{"source": source, "pattern": "x", "save": true})
		add("grep", map[string]any{"source": source, "pattern": "x", "invert": true, "show": "count"})
	}
	add("find", map[string]any{"show": "stat", "sort": "size"})
	add("find", map[string]any{"path": "down", "show": "tree"})
	add("find", map[string]any{"path": "fifo"})
	add("read", map[string]any{"path": "fifo"})
	add("read", map[string]any{"path": "**"})
	add("search", map[string]any{"pattern": "x", "context": 20})
	return all
}

// slowFolder makes a root of files that are large, deep or block their reader.
func slowFolder(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	put := func(name, text string) {
		write(t, filepath.Join(root, name), text)
	}
	put("null.json", "null")
	put("list.json", "["+strings.Repeat(`{"a":[1,2,3],"b":"text"},`, 20_000)+"null]")
	put("long.txt", strings.Repeat("a", 1<<20)+"\n"+strings.Repeat("a b ", 1<<18)+"\n")
	put("deep.json", strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000))
	put("grown.json", "["+strings.Repeat("[],", 1<<20)+"[]]")
	sparse(t, filepath.Join(root, "sparse.bin"), 1<<40, "")
	sparse(t, filepath.Join(root, "line.txt"), 1<<30, strings.Repeat("begin ", 20_000))
	expect.Must(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600))
	down := filepath.Join(root, "down")
	for range 60 {
		down = filepath.Join(down, "deeper and deeper")
		expect.Must(t, os.MkdirAll(down, 0o700))
	}
	return root
}

// sparse makes a file that uses disk space only for its beginning.
func sparse(t testing.TB, path string, size int64, beginning string) {
	t.Helper()
	write(t, path, beginning)
	if err := os.Truncate(path, size); err != nil {
		t.Skipf("no file of %d bytes can be made here: %v", size, err)
	}
}

// timed makes calls, two at a time, and returns how far each exceeded its deadline.
func timed(s *stdioClient, shapes []shape, deadline, slack time.Duration) (over []time.Duration, failures []string) {
	s.limit = deadline + slack
	var mu sync.Mutex
	concurrently(2, shapes, func(c shape) {
		a, err := s.call(c.tool, c.args)
		mu.Lock()
		defer mu.Unlock()
		args, _ := json.Marshal(c.args)
		switch {
		case err != nil:
			failures = append(failures, fmt.Sprintf("%s %.200s: %v", c.tool, args, err))
		case a.text() == "" && c.tool != "slice": // slice may be asked for a line end only
			failures = append(failures, fmt.Sprintf("%s %.200s: an answer of nothing", c.tool, args))
		default:
			over = append(over, max(0, a.took-deadline))
		}
	})
	return over, failures
}

func TestS7EveryCallEndsByItsDeadline(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	deadline := promise.Size(150*time.Millisecond, time.Second)
	shapes := slowShapes(t)
	every := len(shapes)
	most := 60
	if testing.Short() {
		most = 20
	}
	if !promise.Full() { // each k-th, so that all kinds are in
		var some []shape
		for i := range most {
			some = append(some, shapes[i*len(shapes)/most])
		}
		shapes = some
	}
	root := slowFolder(t)
	s := serveStdio(t, root, "--call-timeout", deadline.String())
	over, failures := timed(s, shapes, deadline, slack())
	report(t, failures)
	s.limit = answerLimit
	expect.OK(t, s.ping(), "after all of them")
	slices.Sort(over)
	figures := fmt.Sprintf("%d shapes there are; deadline %s", every, deadline)
	if n := len(over); n > 0 {
		figures += fmt.Sprintf(
			"; over it: p50 %s, p99 %s, most %s", over[n/2].Round(time.Millisecond), over[n*99/100].Round(time.Millisecond),
			over[n-1].Round(time.Millisecond),
		)
	}

	// The control: the same calls to a server with a very long deadline.
	endless := []shape{
		{"jq", map[string]any{"source": "null.json", "filter": "repeat(.) | empty"}},
		{"jq", map[string]any{"source": "null.json", "filter": "until(false; .)"}},
	}
	_, control := timed(serveStdio(t, root, "--call-timeout", "1h"), endless, deadline, time.Second)
	promise.Keptf(t, promise.Proof{Promise: "S7", Cases: len(shapes), Failures: len(failures), Control: len(control)},
		"%s", figures)
}
