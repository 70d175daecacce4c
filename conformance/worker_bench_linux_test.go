package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// What a worker costs a call of the binary, after the first one: the same work by a filter that runs in this process,
// and by one that does not. The figures are medians, in milliseconds; at most 5 between them is what is wanted.
func BenchmarkWorkerOverStdio(b *testing.B) {
	root := b.TempDir()
	expect.Must(b, os.WriteFile(
		filepath.Join(root, "in.json"), []byte(`[{"a":1,"b":"x"},{"a":2,"b":"y"}]`), 0o600,
	))
	s := serveStdio(b, root)
	filters := map[string]string{"in-process": ".[1].a", "worker": ".[1].a + 0"}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for way, filter := range filters {
			a, err := s.call("jq", map[string]any{"source": "in.json", "filter": filter})
			if err != nil || a.text() != "2" {
				b.Fatal(err, a.text())
			}
			took[way] = append(took[way], a.took)
			time.Sleep(200 * time.Millisecond) // a model thinks for longer between two calls
		}
	}
	p50 := map[string]float64{}
	for way, all := range took {
		slices.Sort(all)
		p50[way] = float64(all[len(all)/2].Microseconds()) / 1000
		b.ReportMetric(p50[way], fmt.Sprintf("ms-p50-%s", way))
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, fmt.Sprintf("ms-p99-%s", way))
	}
	b.ReportMetric(p50["worker"]-p50["in-process"], "ms-p50-overhead")
}
