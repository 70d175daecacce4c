package conformance

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// maxKeep is the maximum memory of keep, whatever the size of its input.
const maxKeep = 96 << 20

// TestKeepIsBounded keeps many times more log lines than the binary may hold in memory.
func TestKeepIsBounded(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	size := promise.Size(int64(192<<20), 1<<30)
	if testing.Short() && !promise.Full() {
		size = 64 << 20
	}
	line := []byte("2026-11-20T12:00:00.000Z INFO  request served method=GET path=/v1/items/4711 status=200 took=12ms\n")
	chunk := bytes.Repeat(line, 1000)
	cmd := exec.CommandContext(
		t.Context(), binary(t), "--max-observation", "2GiB", "--quota", "3GiB", "--min-free", "0", "keep",
	)
	cmd.Env = environment(t)
	cmd.Stdin = io.LimitReader(endless(chunk), size)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	peak := expect.Value(peakOf(cmd))(t)
	if !strings.HasPrefix(out.String(), "SAVED as obs:") {
		t.Fatalf("no receipt:\n%s", out.String())
	}
	if peak > maxKeep {
		t.Errorf("keeping %d MiB took %d MiB of memory, at most %d", size>>20, peak>>20, maxKeep>>20)
	}
	t.Logf("%d MiB kept with %d MiB of memory", size>>20, peak>>20)
}

// endless repeats a chunk.
type endless []byte

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e[:min(len(e), len(p)-n)])
	}
	return n, nil
}

// peakOf runs a program and returns its peak memory in bytes, from /proc. The figure of wait includes the memory of
// this process at the fork.
func peakOf(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			return peak, err
		case <-tick.C:
			if now, ok := highWater(cmd.Process.Pid); ok {
				peak = max(peak, now)
			}
		}
	}
}

// TestOneLongLine searches, slices and reads one line that is longer than the memory limit.
func TestOneLongLine(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	size := promise.Size(int64(272<<20), 1<<30) // over the limit of 256 MiB
	if testing.Short() && !promise.Full() {
		size = 64 << 20
	}
	root := t.TempDir()
	f := expect.Value(os.Create(filepath.Join(root, "line.txt")))(t)
	defer func() { _ = f.Close() }()
	for _, part := range []struct {
		at   int64
		text string
	}{{0, strings.Repeat("begin ", 20_000)}, {size - 120_000, strings.Repeat("x", 119_990) + "the needle"}} {
		expect.Value(f.WriteAt([]byte(part.text), part.at))(t)
	}
	env := environment(t)
	for _, call := range []struct {
		words []string
		want  string // a regular expression that the answer matches
		code  int
	}{
		{[]string{"search", "pattern=needle", "path=line.txt"}, `^\{"file":"line\.txt","line":1,"text":"x{100,}.*"column":\d+,"cut":true\}`, 0},
		{[]string{"grep", "pattern=needle", "source=line.txt"}, `^1: x{100,}.*the needle`, 0},
		{[]string{"slice", "bytes=-10", "source=line.txt"}, `^showing bytes \d+-\d+ of \d+\nthe needle\n$`, 0},
		{
			[]string{"slice", "lines=1", "source=line.txt"},
			`^showing 1-1 of 1; row 1 is cut in its middle, whole: slice .*\n(begin ){100,}.*… [0-9]+ chars …`, 0,
		},
		{
			[]string{"read", "path=line.txt"},
			fmt.Sprintf(`^LARGE OUTPUT DETECTED: read from line\.txt\ntotal: 1 line, %d chars`, size), 0,
		},
		{[]string{"find", "show=stat"}, fmt.Sprintf(`^\{"path":"line\.txt","type":"file","size":%d,`, size), 0},
		// refused in words
		{[]string{"jq", "filter=length", "source=line.txt"}, `^error: jq: line 1 is longer than 16 MiB; slice and grep`, 1},
	} {
		cmd := exec.CommandContext(
			t.Context(), binary(t), append([]string{"--root", root, "--call-timeout", "10m", "call"}, call.words...)...,
		)
		cmd.Env = env
		var out bytes.Buffer
		cmd.Stdout = &out
		peak, err := peakOf(cmd)
		if peak > 256<<20 {
			t.Errorf("%v took %d MiB", call.words, peak>>20)
		}
		if code := cmd.ProcessState.ExitCode(); code != call.code {
			t.Errorf("%v: exit status %d (%v), want %d", call.words, code, err, call.code)
		}
		answer := out.String()
		if len(answer) > 60_000 || !regexp.MustCompile(call.want).MatchString(answer) || timedOut.MatchString(answer) {
			t.Errorf(
				"%v answered %d bytes, want a match of %s within 60000 and no time-out: %.500q … %.500q", call.words, len(answer),
				call.want, answer, answer[max(0, len(answer)-500):],
			)
		}
		t.Logf("%v: %d MiB, %.120q", call.words, peak>>20, answer)
	}
}

// timedOut matches the note of an answer whose call was stopped by its deadline.
var timedOut = regexp.MustCompile(`timed out|time-out|timeout|stopped after`)
