package tree

import (
	"bufio"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

var large = flag.String("large", "", "a large tree to list beside rg; Go's own source where none is named")

// BenchmarkListBesideRg lists a tree alternately with rg --files. Both write the names, honour ignore files and use all
// cores; rg lists in any order, Walk in path order.
func BenchmarkListBesideRg(b *testing.B) {
	dir := *large
	if dir == "" {
		dir = peer.GoSource(b)
	}
	rg := peer.Find(b, "rg")
	r := open(b, dir)
	b.ReportAllocs()
	var ours, theirs []time.Duration
	for b.Loop() {
		start := time.Now()
		cmd := exec.CommandContext(b.Context(), rg, "--no-config", "--files", ".")
		cmd.Dir = dir
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(start))
		start = time.Now()
		out := bufio.NewWriterSize(io.Discard, 64<<10)
		if _, err := r.Walk(b.Context(), Options{}, func(e Entry) error {
			if e.Type == File {
				_, _ = out.WriteString(e.Path)
				return out.WriteByte('\n')
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(start))
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		b.ReportMetric(float64(differences(b, r, dir)), "differences-with-git")
	}
	b.ReportMetric(median(ours).Seconds()*1e3, "ms")
	b.ReportMetric(median(ours).Seconds()/median(theirs).Seconds(), "of-rg")
}

// differences counts the files that only one of a walk and git lists, without hidden ones.
func differences(b *testing.B, r *Root, dir string) (n int) {
	listed := map[string]bool{}
	if _, err := r.Walk(b.Context(), Options{}, func(e Entry) error {
		if e.Type != Dir {
			listed[e.Path] = true
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for p := range strings.SplitSeq(string(git(b, dir, nil, "ls-files", "-co", "--exclude-standard", "-z")), "\x00") {
		hidden := strings.HasPrefix(p, ".") || strings.Contains(p, "/.")
		switch {
		case p == "" || hidden:
		case listed[p]:
			delete(listed, p)
		default:
			n++
		}
	}
	return n + len(listed)
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkWalkGrowth walks trees of 100, 1,000 and 10,000 files, twenty per directory: the time per file must not
// grow.
func BenchmarkWalkGrowth(b *testing.B) {
	for _, files := range []int{100, 1000, 10_000} {
		b.Run(strconv.Itoa(files), func(b *testing.B) {
			dir := b.TempDir()
			for i := range files {
				sub := filepath.Join(dir, strconv.Itoa(i/400), strconv.Itoa(i/20))
				if i%20 == 0 {
					if err := os.MkdirAll(sub, 0o700); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(i)+".go"), nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			if err := os.WriteFile(
				filepath.Join(dir, ".gitignore"), []byte("*.o\n[a-z]*.mod.c\n/tools/**/x\n!keep.o\n"), 0o600,
			); err != nil {
				b.Fatal(err)
			}
			r := open(b, dir)
			for b.Loop() {
				if _, err := r.Walk(b.Context(), Options{}, func(Entry) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*files), "ns/file")
		})
	}
}
