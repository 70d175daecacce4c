package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

// TestBadCommands compares the answers of commands that behave badly. Each must answer at once, and the next command
// must run as usual.
func TestBadCommands(t *testing.T) {
	t.Parallel()
	for _, c := range corpus.Rows[tried](t, "bad.ndjson") {
		t.Run(c.Name, func(t *testing.T) {
			b := newBench(t, shell.Options{})
			text, answer := b.run(c.Command)
			if !strings.Contains(text, c.Want) || answer.Failed || answer.Receipts[0].Status != c.Status {
				t.Errorf(
					"failed %t, %s: %.600s; want %q, %s",
					answer.Failed,
					answer.Receipts[0].Status,
					text,
					c.Want,
					c.Status,
				)
			}
			if text, _ := b.run("echo again > /tmp/f && cat /tmp/f"); text != "again\n\n" {
				t.Errorf("the next command: %s", text)
			}
		})
	}
}

// TestManyProcesses starts more processes than a command may have. They must all end with it, and the next command must
// run.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Processes: 100})
	text, answer := b.call(t.Context(), map[string]any{
		"command": "i=0; while [ $i -lt 10000 ]; do sleep 1000 & i=$((i+1)); done; echo all", "timeout_s": 20,
	})
	if !strings.Contains(text, "100 processes and threads") || answer.Receipts[0].Status != "failure" {
		t.Errorf("%s: %.500s", answer.Receipts[0].Status, text)
	}
	if text, _ := b.run("echo again"); text != "again\n\n" {
		t.Errorf("the next command: %s", text)
	}
}

// TestRootRemovedMeanwhile removes a root while a command runs in it.
func TestRootRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	b.root = filepath.Join(t.TempDir(), "root")
	expect.Must(t, os.Mkdir(b.root, 0o700))
	const command = "sleep 1.0731"
	go func() {
		for len(running(command)) == 0 && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		_ = os.RemoveAll(b.root)
	}()
	if text, answer := b.run("echo first; " + command + "; ls; echo second"); text != "first\nsecond\n\n" || answer.Failed {
		t.Errorf("%q", text)
	}
}

// TestRootRemovedBefore removes a root while a server has it open, before a command starts.
func TestRootRemovedBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	b.opened = func() { _ = os.RemoveAll(b.root) }
	text, answer := b.run("echo first")
	if want := "the root " + b.root + " was removed"; !answer.Failed || !strings.Contains(text, want) {
		t.Errorf("no %q in %q", want, text)
	}
}

// TestTimeoutZero checks that a time-out of 0 is the default.
func TestTimeoutZero(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	text, answer := b.call(t.Context(), map[string]any{"command": "sleep .2; echo end", "timeout_s": 0})
	if answer.Failed || text != "end\n\n" {
		t.Error(text)
	}
}

// TestTwoHundredAtOnce starts two hundred commands. Each must run or be refused with what to do, and none may be left.
func TestTwoHundredAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	ran, refused := 0, 0
	for range 200 {
		wg.Go(func() {
			text, answer := b.run("sleep .1; echo end")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !answer.Failed && text == "end\n\n":
				ran++
			case answer.Failed && strings.Contains(text, "wait for one"):
				refused++
			default:
				t.Errorf("%.300s", text)
			}
		})
	}
	wg.Wait()
	if ran < 16 || ran+refused != 200 {
		t.Errorf("%d ran, %d were refused", ran, refused)
	}
	if text, _ := b.run("echo again"); text != "again\n\n" {
		t.Errorf("the next command: %s", text)
	}
}

// slowly calls f until it returns true.
func (b *bench) slowly(f func() bool) {
	b.t.Helper()
	for range 200 {
		if f() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Error("it took over ten seconds")
}

// TestBusySaysWhen fills all slots: the error says when one is free at the latest, and how to free one sooner. Then a
// slot that was freed is taken.
func TestBusySaysWhen(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{Slice: 200 * time.Millisecond})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() { b.run("until test -e stop; do sleep .02; done") })
	}
	wg.Wait()
	text, answer := b.run("echo end")
	says := regexp.MustCompile(`in (\d+) seconds at the latest; sooner if you .* run after=(run:[0-9a-z]{12})`)
	m := says.FindStringSubmatch(text)
	if !answer.Failed || m == nil || m[1] > "1800" || m[1] < "1790" {
		t.Fatalf("commands that wait for a call: %s", text)
	}
	expect.Must(t, os.WriteFile(filepath.Join(b.root, "stop"), nil, 0o600))
	b.slowly(func() bool {
		_, answer := b.call(t.Context(), map[string]any{"after": m[2]})
		return answer.Failed // it has ended and was answered
	})
	if text, answer := b.run("echo end"); answer.Failed || text != "end\n\n" {
		t.Errorf("after one has ended: %s", text)
	}
}

// TestBusyByTimeout fills all slots with commands that calls follow: one is free when the first time-out ends it.
func TestBusyByTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 16 {
		wg.Go(func() {
			for ctx.Err() == nil { // a call below may take the slot first
				b.call(ctx, map[string]any{"command": "sleep 1000", "timeout_s": 40 + i})
			}
		})
	}
	want := regexp.MustCompile(`in (3\d|4[01]) seconds at the latest\n`)
	b.slowly(func() bool {
		text, answer := b.run("true")
		if answer.Failed && !want.MatchString(text) {
			t.Errorf("%q", text)
		}
		return answer.Failed
	})
}

// running returns the processes of a command, whose words are unique.
func running(command string) (all []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range dirs {
		if line, _ := os.ReadFile(file); strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ") == command {
			all = append(all, file)
		}
	}
	return all
}
