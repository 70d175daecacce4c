package conformance

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// keepSizes are the input sizes of the benchmarks of keep, in MB; -short leaves out the last.
var keepSizes = []int{10, 100, 1000}

// logOf writes a log of the given number of MB, without equal lines.
func logOf(b *testing.B, mb int) (name string, lines int) {
	b.Helper()
	if mb == keepSizes[2] && testing.Short() {
		b.Skip("-short")
	}
	name = filepath.Join(b.TempDir(), "in.log")
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	f := bufio.NewWriterSize(file, 1<<20)
	levels := []string{"INFO ", "INFO ", "WARN ", "ERROR"}
	var text []byte
	for size := 0; size < mb*1e6; lines++ {
		text = fmt.Appendf(text[:0], "2026-11-20T12:%02d:%02d.%03dZ %s request served method=GET path=/v1/items/%d status=200 took=%dms\n",
			lines/60_000%60, lines/1000%60, lines%1000, levels[lines%4], lines*7919%100_003, lines%977)
		size += len(text)
		if _, err := f.Write(text); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(f.Flush(), file.Close()); err != nil {
		b.Fatal(err)
	}
	return name, lines
}

// through returns the duration of a program that reads one file and writes another.
func through(b *testing.B, cmd *exec.Cmd, in string) (took time.Duration, peak int64, out string) {
	b.Helper()
	out = in + ".out"
	from, err := os.Open(in)
	if err != nil {
		b.Fatal(err)
	}
	to, err := os.Create(out)
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = from, to
	began := time.Now()
	if peak, err = peakOf(cmd); err != nil {
		b.Fatal(cmd.Args, err)
	}
	took = time.Since(began)
	_, _ = from.Close(), to.Close()
	return took, peak, out
}

func raised(args ...string) []string {
	return append([]string{"--max-observation", "2GiB", "--quota", "3GiB", "--min-free", "0"}, args...)
}

// BenchmarkKeep is mcp-funnel keep beside cat > file, in turn. Run it with -benchtime 5x.
func BenchmarkKeep(b *testing.B) {
	for _, mb := range keepSizes {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			in, _ := logOf(b, mb)
			var ours, peers []time.Duration
			var most int64
			for b.Loop() {
				keep := exec.CommandContext(b.Context(), binary(b), raised("keep")...)
				keep.Env = environment(b)
				took, peak, _ := through(b, keep, in)
				ours, most = append(ours, took), max(most, peak)
				_ = os.RemoveAll(storeOf(keep.Env))
				took, _, out := through(b, exec.CommandContext(b.Context(), "cat"), in)
				peers = append(peers, took)
				_ = os.Remove(out)
			}
			slices.Sort(ours)
			slices.Sort(peers)
			b.ReportMetric(float64(ours[len(ours)/2].Milliseconds()), "ms-keep")
			b.ReportMetric(float64(ours[len(ours)/2])/float64(peers[len(peers)/2]), "of-cat")
			b.ReportMetric(float64(most)/(1<<20), "MB-peak")
		})
	}
}

// storeOf returns the directory of the store in an environment.
func storeOf(env []string) string {
	for _, e := range env {
		if home, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			return home
		}
	}
	return ""
}

var keptAs = regexp.MustCompile(`obs:[0-9a-z]{12}`)

// BenchmarkSliceDeep shows 50 lines near the end of what is kept, beside sed -n, in turn: each a process of its own.
func BenchmarkSliceDeep(b *testing.B) {
	for _, mb := range keepSizes {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			in, lines := logOf(b, mb)
			env := environment(b)
			keep := exec.CommandContext(b.Context(), binary(b), raised("keep")...)
			keep.Env = env
			_, _, out := through(b, keep, in)
			text, _ := os.ReadFile(out)
			id := keptAs.FindString(string(text))
			first := lines * 9 / 10
			var byLine, byByte, peers []time.Duration
			for b.Loop() {
				for way, all := range map[string]*[]time.Duration{
					fmt.Sprintf("lines=%d-%d", first, first+49):                           &byLine,
					fmt.Sprintf("bytes=%d-%d", int64(mb)*900_000, int64(mb)*900_000+5000): &byByte,
				} {
					slice := exec.CommandContext(b.Context(), binary(b), raised("call", "slice", "source="+id, way)...)
					slice.Env = env
					took, _, _ := through(b, slice, in)
					*all = append(*all, took)
				}
				took, _, _ := through(b, exec.CommandContext(b.Context(), "sed", "-n", fmt.Sprintf("%d,%dp", first, first+49)), in)
				peers = append(peers, took)
			}
			for _, all := range [][]time.Duration{byLine, byByte, peers} {
				slices.Sort(all)
			}
			sed := float64(peers[len(peers)/2])
			b.ReportMetric(float64(byLine[len(byLine)/2].Microseconds())/1000, "ms-line")
			b.ReportMetric(float64(byLine[len(byLine)/2])/sed, "line-of-sed")
			b.ReportMetric(float64(byByte[len(byByte)/2])/sed, "byte-of-sed")
		})
	}
}
