package worker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// spareOf waits until this process has no workers but the spare one, or none at all if n is 0: the worker of the last
// job may still be ending, and the next one be starting.
func spareOf(t *testing.T, n int) (pids []int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		pid, settled := worker.Waiting()
		pids = slices.DeleteFunc(childrenOf(t, os.Getpid()), func(pid int) bool { return !alive(pid) })
		if settled && len(pids) == n && (n == 0 && pid == 0 || n == 1 && pids[0] == pid) {
			return pids
		}
		if time.Now().After(end) {
			t.Fatalf("the workers %v live, %d waits, want %d", pids, pid, n)
		}
	}
}

func TestSpare(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("children are counted in /proc: skipped")
	}
	defer goleak.VerifyNone(t)
	worker.KeepSpare(time.Hour)
	defer worker.KeepSpare(0)
	spareOf(t, 0)

	echo := func(text string) {
		t.Helper()
		var out bytes.Buffer
		if err := worker.Run(
			within(t, time.Minute), worker.Spec{Name: "echo", In: strings.NewReader(text)}, &out,
		); err != nil || out.String() != text {
			t.Fatalf("%q, %v", out.String(), err)
		}
	}
	echo("one")
	first := spareOf(t, 1)
	echo("two")
	if second := spareOf(t, 1); second[0] == first[0] {
		t.Error("a worker did two jobs")
	}

	// The spare worker receives files like a new one, and has the limits of its job.
	path := filepath.Join(t.TempDir(), "f")
	expect.Must(t, os.WriteFile(path, []byte("in a file"), 0o600))
	f := expect.Value(os.Open(path))(t)
	defer func() { _ = f.Close() }()
	var out bytes.Buffer
	if err := worker.Run(within(t, time.Minute), worker.Spec{Name: "files", Files: []*os.File{f}}, &out); err != nil ||
		out.String() != "in a file" {
		t.Errorf("%q, %v", out.String(), err)
	}
	spareOf(t, 1)
	expect.ErrorIs(t, worker.Run(
		within(t, time.Minute), worker.Spec{Name: "memory", Memory: 96 * mib}, io.Discard,
	), worker.ErrMemory, "over the memory cap")
	spareOf(t, 0) // none after one that was ended
	echo("again")
	spareOf(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	works := writer(func(b []byte) (int, error) { cancel(); return len(b), nil })
	expect.ErrorIs(t, worker.Run(ctx, worker.Spec{Name: "flood"}, works), context.Canceled, "cancelled")
	spareOf(t, 0)

	// A spare worker that was killed while waiting fails at most one job.
	echo("once more")
	p := expect.Value(os.FindProcess(spareOf(t, 1)[0]))(t)
	expect.Must(t, p.Kill())
	if err := worker.Run(within(t, time.Minute), worker.Spec{Name: "echo"}, io.Discard); err != nil &&
		!errors.Is(err, worker.ErrCrashed) {
		t.Error(err)
	}
	echo("after its death")
	spareOf(t, 1)
	worker.KeepSpare(0)
	spareOf(t, 0)
}

// An idle spare worker is ended, and holds nothing while it waits.
func TestSpareIsLetGo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("children are counted in /proc: skipped")
	}
	defer goleak.VerifyNone(t)
	worker.KeepSpare(time.Hour) // until it was seen, on however busy a machine
	defer worker.KeepSpare(0)
	expect.Must(t, worker.Run(within(t, time.Minute), worker.Spec{Name: "echo"}, io.Discard))
	spareOf(t, 1)
	worker.KeepSpare(time.Millisecond)
	spareOf(t, 0)
}
