package conformance

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// maxKeep is what keeping may take however much is kept.
const maxKeep = 96 << 20

// TestKeepIsBounded keeps log lines through the binary, many times what it may hold in memory.
func TestKeepIsBounded(t *testing.T) {
	drivesOnly(t)
	size := promise.Size(int64(384<<20), 1<<30)
	if testing.Short() && !promise.Full() {
		size = 64 << 20
	}
	line := []byte("2026-11-20T12:00:00.000Z INFO  request served method=GET path=/v1/items/4711 status=200 took=12ms\n")
	chunk := bytes.Repeat(line, 1000)
	cmd := exec.CommandContext(t.Context(), binary(t), "--max-observation", "2GiB", "--quota", "3GiB", "--min-free", "0", "keep")
	cmd.Env = environment(t)
	cmd.Stdin = io.LimitReader(endless(chunk), size)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	peak, err := peakOf(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "LARGE OUTPUT DETECTED: kept whole as obs:") {
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

// peakOf runs a program and returns the most memory it held, in bytes: what /proc said last. (What wait says is no less
// than what this process held when it started the other.)
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

// TestOneLongLine: one line that is longer than what memory may be taken is searched, sliced and read in bounded memory.
func TestOneLongLine(t *testing.T) {
	drivesOnly(t)
	size := promise.Size(int64(272<<20), 1<<30) // over what is allowed, which 256 MiB are
	if testing.Short() && !promise.Full() {
		size = 64 << 20
	}
	root := t.TempDir()
	f, err := os.Create(filepath.Join(root, "line.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, part := range []struct {
		at   int64
		text string
	}{{0, strings.Repeat("begin ", 20_000)}, {size - 120_000, strings.Repeat("x", 119_990) + "the needle"}} {
		if _, err := f.WriteAt([]byte(part.text), part.at); err != nil {
			t.Fatal(err)
		}
	}
	env := environment(t)
	for _, words := range [][]string{
		{"search", "pattern=needle", "path=line.txt"}, {"grep", "pattern=needle", "source=line.txt"}, {"slice", "bytes=-10", "source=line.txt"}, {"slice", "lines=1", "source=line.txt"},
		{"read", "path=line.txt"}, {"find", "show=stat"}, {"jq", "filter=length", "source=line.txt"},
	} {
		cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"--root", root, "call"}, words...)...)
		cmd.Env = env
		var out bytes.Buffer
		cmd.Stdout = &out
		if peak, _ := peakOf(cmd); peak > 256<<20 { // what is binary is refused by some, in words
			t.Errorf("%v took %d MiB", words, peak>>20)
		}
		if out.Len() == 0 || out.Len() > 60_000 {
			t.Errorf("%v answered %d bytes", words, out.Len())
		}
		t.Logf("%v: %.120q", words, out.String())
	}
}
