package jq

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// BenchmarkPeer runs a filter in a worker and the same in jq, one after the other, on arrays of 2, 20 and 200 MB, and
// reports the medians' ratio (below 1: faster than jq) and the most memory a worker held. Run it with -benchtime=5x.
func BenchmarkPeer(b *testing.B) {
	program := peer.Find(b, "jq")
	dir := b.TempDir()
	from := toolstest.Roots(b, dir)
	tool := JQ(Options{Memory: 2 << 30})
	for _, size := range []int{2e6, 20e6, 200e6} {
		name := fmt.Sprintf("%dMB", size/1e6)
		path := filepath.Join(dir, name)
		if err := writeLog(path, size); err != nil {
			b.Fatal(err)
		}
		for _, filter := range []string{
			".[] | select(.score > 999.9) | .id", `map(select(.level == "error")) | length`, "length",
			"group_by(.level) | map({level: .[0].level, n: length})",
		} {
			b.Run(name+"/"+filter, func(b *testing.B) {
				var ours, theirs []time.Duration
				var most int64
				for b.Loop() {
					stop := watchChildren(&most)
					start := time.Now()
					if err := tool.Run(
						b.Context(), tools.Input{Args: fmt.Appendf(nil, `{"source":%q,"filter":%q}`, name, filter), Sources: from},
						nothing{},
					); err != nil {
						b.Fatal(err)
					}
					ours = append(ours, time.Since(start))
					stop()
					start = time.Now()
					if err := exec.CommandContext(b.Context(), program, "-c", filter, path).Run(); err != nil {
						b.Fatal(err)
					}
					theirs = append(theirs, time.Since(start))
				}
				b.ReportMetric(median(ours).Seconds()/median(theirs).Seconds(), "of-jq")
				b.ReportMetric(median(theirs).Seconds(), "jq-s")
				b.ReportMetric(float64(most)/1024, "MiB-peak")
			})
		}
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// writeLog writes an array of records, as much as size bytes.
func writeLog(path string, size int) error {
	r := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields(
		"the quick brown fox jumps over a lazy dog while seventeen silent engineers measure latency in cold rooms",
	)
	some := func(n int) []string {
		s := make([]string, n)
		for i := range s {
			s[i] = words[r.IntN(len(words))]
		}
		return s
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i, n := 0, 0; n < size; i++ {
		k, _ := fmt.Fprintf(w, "%s{\"id\":%d,\"level\":%q,\"user\":{\"name\":%q,\"age\":%d},\"score\":%.3f,\"tags\":[\"%s\"],\"message\":%q,\"active\":%t,\"ref\":null}",
			map[bool]string{true: "[", false: ",\n"}[i == 0], i, []string{
				"info", "warn", "error", "debug",
			}[r.IntN(4)], some(1)[0]+strconv.Itoa(r.IntN(99999)), r.IntN(90),
			r.Float64()*1000, strings.Join(some(1+r.IntN(4)), `","`), strings.Join(some(5+r.IntN(25)), " "), r.IntN(2) == 0)
		n += k
	}
	_, _ = io.WriteString(w, "]\n")
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// watchChildren notes the most memory a child of this process held, in KiB, until it is stopped. It looks only where
// there is /proc.
func watchChildren(most *int64) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	parent := fmt.Sprintf("PPid:\t%d\n", os.Getpid())
	go func() {
		defer close(done)
		for {
			paths, _ := filepath.Glob("/proc/[0-9]*/status")
			for _, path := range paths {
				b, _ := os.ReadFile(path)
				if _, peak, ok := strings.Cut(string(b), "VmHWM:"); ok && strings.Contains(string(b), parent) {
					n, _ := strconv.ParseInt(strings.Fields(peak)[0], 10, 64)
					*most = max(*most, n)
				}
			}
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}
