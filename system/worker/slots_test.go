package worker_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
)

// begun closes its channel at the first byte written.
type begun struct {
	once sync.Once
	ch   chan struct{}
}

func (b *begun) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.ch) })
	return len(p), nil
}

// While jobs without an end hold all slots, a small job is answered. The control: one that is not small is not.
func TestSmallJobsHaveASlot(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t, 2*time.Minute))
	var long sync.WaitGroup
	for range worker.Slots() {
		out := &begun{ch: make(chan struct{})}
		long.Go(func() {
			expect.ErrorIs(t, worker.Run(ctx, worker.Spec{Name: "pid"}, out), context.Canceled, "a job without an end")
		})
		select {
		case <-out.ch:
		case <-ctx.Done():
			t.Fatal("a long job did not start")
		}
	}
	for range 2 { // one after the other: the slot is given back
		var out bytes.Buffer
		if err := worker.Run(ctx, worker.Spec{Name: "echo", Small: true, In: strings.NewReader("x")}, &out); err != nil ||
			out.String() != "x" {
			t.Errorf("a small job: %q, %v", &out, err)
		}
	}
	brief, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	expect.Fails(t, worker.Run(brief, worker.Spec{Name: "echo", In: strings.NewReader("x")}, io.Discard),
		"all workers were busy", "the control, a job that is not small")
	cancel()
	long.Wait()
}
