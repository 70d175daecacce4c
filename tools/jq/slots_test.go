package jq

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// firstRow is an Output that closes its channel at the first row.
type firstRow struct {
	*recorder
	once sync.Once
	ch   chan struct{}
}

func (f *firstRow) Page() tools.Page { return f }

func (f *firstRow) Row(b []byte, more tools.Call) error {
	f.once.Do(func() { close(f.ch) })
	return f.recorder.Row(b, more)
}

// While queries without an end on a large source hold all slots, a query of a small source is answered. The control:
// the same query of the large source is not.
func TestSmallSourcesDoNotWait(t *testing.T) {
	from := folder(t, map[string]string{"small": "[1,2]", "large": "[1,2" + strings.Repeat(" ", smallText) + "]"})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	args, err := json.Marshal(m{"source": "large", "filter": "1, (repeat(2) | empty)"})
	expect.Must(t, err)
	long, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range max(2, runtime.NumCPU()) {
		out := &firstRow{recorder: &recorder{most: 10, counts: map[string]float64{}}, ch: make(chan struct{})}
		running.Go(func() {
			if err := asItIs.Run(long, tools.Input{Args: args, Sources: from}, out); !errors.Is(err, context.Canceled) {
				t.Errorf("a query without an end: %v", err)
			}
		})
		select {
		case <-out.ch:
		case <-ctx.Done():
			t.Fatal("a long query did not start")
		}
	}
	r, err := call(ctx, asItIs, from, m{"source": "small", "filter": "length"}, 10)
	if err != nil || joined(r.rows) != "2" {
		t.Errorf("the small source: %q, %v", r.rows, err)
	}
	brief, end := context.WithTimeout(ctx, 300*time.Millisecond)
	defer end()
	if r, err := call(brief, asItIs, from, m{"source": "large", "filter": "length"}, 10); err == nil {
		t.Errorf("the control, the large source: %q", r.rows)
	}
	stop()
	running.Wait()
}
