//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Clients of the mix, each with one call after the other.
const (
	heavyClients = 40 // search Go's source
	smallClients = 8  // read a file of 1 kB
	smallPause   = 100 * time.Millisecond
)

// mixed measures small calls beside heavy ones over HTTP, and prints the 99th percentile of the time of a small call.
func (b *bench) mixed(ctx context.Context) error {
	small := filepath.Join(b.work, "mix")
	if err := os.MkdirAll(small, 0o755); err != nil {
		return err
	}
	text := strings.Repeat(servedLine, 1+1000/len(servedLine))
	if err := os.WriteFile(filepath.Join(small, "small.txt"), []byte(text), 0o600); err != nil {
		return err
	}
	first, _, err := startServer(ctx, small, token, []string{filepath.Join(b.bin, "mcp-funnel"), "--root", small, "--root",
		filepath.Join(b.goroot, "src"), "--store", filepath.Join(b.work, "store"), "--min-free", "0", "--call-timeout", "10m",
		"--http", "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer first.end()
	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		times    = map[string][]float64{}
		failures error
	)
	began := time.Now()
	client := func(tool, args string, pause time.Duration) {
		s := server{cmd: first.cmd, at: first.at}
		err := s.connect(ctx, token)
		for err == nil && time.Since(began) < b.mix {
			at := time.Now()
			_, err = s.call(ctx, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
			mu.Lock()
			times[tool] = append(times[tool], time.Since(at).Seconds())
			mu.Unlock()
			time.Sleep(pause)
		}
		mu.Lock()
		failures = errors.Join(failures, err)
		mu.Unlock()
	}
	for i := range heavyClients {
		args := fmt.Sprintf(`{"pattern":"return [a-z]+%d","path":"src","show":"counts"}`, i%10)
		all.Go(func() { client("search", args, 0) })
	}
	for range smallClients {
		all.Go(func() { client("read", `{"path":"mix/small.txt"}`, smallPause) })
	}
	all.Wait()
	reads := slices.Sorted(slices.Values(times["read"]))
	if failures != nil || len(reads) == 0 {
		return errors.Join(failures, errors.New("no small call was answered"))
	}
	fmt.Printf("note: %d searches, %d reads, p50 %s\nBenchmarkMix 1 %v sec/op\n",
		len(times["search"]), len(reads), span(median(reads)), reads[len(reads)*99/100])
	return nil
}
