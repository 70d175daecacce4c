package search

import (
	"bufio"
	"flag"
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

var large = flag.String("large", "", "a large tree to search beside rg; Go's own source where none is named")

// BenchmarkSearchBesideRg searches a tree in turns with rg. Both honour ignore files, tell each line with its file
// and number, and take the cores they find; rg's order is any, ours that of the paths, and ours is JSON.
func BenchmarkSearchBesideRg(b *testing.B) {
	dir := *large
	if dir == "" {
		dir = peer.GoSource(b)
	}
	rg := peer.Find(b, "rg")
	s := toolstest.Roots(b, dir)
	for name, pattern := range map[string]string{"literal": "PM_RESUME", "rare": "no such thing here", "with-literal": `[a-z]+_resume_noirq\(`, "many": "struct device"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var ours, theirs []time.Duration
			for b.Loop() {
				start := time.Now()
				cmd := exec.CommandContext(b.Context(), rg, "--no-config", "-n", "-e", pattern, ".")
				cmd.Dir = dir
				out, err := cmd.StdoutPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, bufio.NewReaderSize(out, 64<<10)); err != nil {
					b.Fatal(err)
				}
				_ = cmd.Wait() // 1: no match
				theirs = append(theirs, time.Since(start))
				start = time.Now()
				must(b, Search(), s, args{"pattern": pattern})
				ours = append(ours, time.Since(start))
			}
			b.ReportMetric(median(ours).Seconds()*1e3, "ms")
			b.ReportMetric(median(ours).Seconds()/median(theirs).Seconds(), "of-rg")
		})
	}
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
