package jq

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func bench(b *testing.B, tool tools.Tool, text []byte, filter string) {
	from := folder(b, map[string]string{"in": string(text)})
	args := fmt.Appendf(nil, `{"source":"in","filter":%q}`, filter)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := tool.Run(b.Context(), tools.Input{Args: args, Sources: from}, tools.Discard{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A small text: what a worker costs.
func BenchmarkSmall(b *testing.B) {
	text := []byte(`[{"a":1,"b":"x"},{"a":2,"b":"y"}]`)
	b.Run("in process", func(b *testing.B) { bench(b, asItIs, text, ".[] | select(.a > 1) | .b") })
	b.Run("worker", func(b *testing.B) { bench(b, inWorker, text, ".[] | select(.a > 1) | .b") })
}

// What a job costs over the same work in this process where a worker waits for it, at the median: at most 5 ms is
// what is wanted. The next worker starts in the pause after a call, as it does while a model thinks.
func BenchmarkWorkerOverhead(b *testing.B) {
	worker.KeepSpare(time.Minute)
	defer worker.KeepSpare(0)
	from := folder(b, map[string]string{"in": `[{"a":1,"b":"x"},{"a":2,"b":"y"}]`})
	input := tools.Input{Args: []byte(`{"source":"in","filter":".[] | select(.a > 1) | .b"}`), Sources: from}
	var took [2][]time.Duration
	for b.Loop() {
		for i, tool := range []tools.Tool{inProcess, inWorker} {
			start := time.Now()
			if err := tool.Run(b.Context(), input, tools.Discard{}); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
			time.Sleep(100 * time.Millisecond)
		}
	}
	var p50 [2]float64
	for i, all := range took {
		slices.Sort(all)
		p50[i] = float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(p50[0], "ms-p50-in-process")
	b.ReportMetric(p50[1], "ms-p50-worker")
	b.ReportMetric(p50[1]-p50[0], "ms-p50-overhead")
}
