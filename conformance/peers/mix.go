//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Clients of the mix, each with one call after the other.
const (
	heavyClients = 40 // search Go's source
	smallClients = 8  // read a file of 1 kB
	smallPause   = 100 * time.Millisecond
)

// mixed measures small calls beside heavy ones over HTTP, for 60 s or in the small form for 6 s: the 99th percentile of
// the time of a small call, in milliseconds. The note has how many calls of each kind were answered.
func (b *bench) mixed(ctx context.Context) (got result, err error) {
	small := filepath.Join(b.work, "mix")
	if err := os.MkdirAll(small, 0o755); err != nil {
		return got, err
	}
	text := strings.Repeat(servedLine, 1+1000/len(servedLine))
	if err := os.WriteFile(filepath.Join(small, "small.txt"), []byte(text), 0o600); err != nil {
		return got, err
	}
	command := append(b.funnel(small), "--root", filepath.Join(b.goroot, "src"), "--http", "127.0.0.1:0")
	l, _, err := startServer(ctx, small, wireToken, command)
	if err != nil {
		return got, err
	}
	defer l.end()
	last := 60 * time.Second
	if b.small {
		last = 6 * time.Second
	}
	var (
		mu       sync.Mutex
		times    []time.Duration
		heavy    int
		failures error
		all      sync.WaitGroup
		ids      atomic.Int64
	)
	post := l.transport.(*webTransport).post
	begun := time.Now()
	client := func(tool string, args map[string]any, pause time.Duration, answered func(time.Duration)) {
		for time.Since(begun) < last {
			at := time.Now()
			answer, err := post(toolCall(int(ids.Add(1)), tool, args))
			if err == nil {
				err = failed(answer)
			}
			mu.Lock()
			failures = errors.Join(failures, err)
			answered(time.Since(at))
			mu.Unlock()
			if err != nil {
				return
			}
			time.Sleep(pause)
		}
	}
	for i := range heavyClients {
		all.Go(func() {
			args := map[string]any{"pattern": fmt.Sprintf("return [a-z]+%d", i%10), "path": "src", "show": "counts"}
			client("search", args, 0, func(time.Duration) { heavy++ })
		})
	}
	for range smallClients {
		all.Go(func() {
			args := map[string]any{"path": "mix/small.txt"}
			client("read", args, smallPause, func(took time.Duration) { times = append(times, took) })
		})
	}
	all.Wait()
	got.ours = []time.Duration{quantile(times, 0.99)}
	got.note = fmt.Sprintf("%d searches, %d reads, p50 %s", heavy, len(times), span(median(times)))
	return got, failures
}

// echoing measures 200 commands one after the other: how much longer `run` takes for one than `sh -c`, in the median.
func (b *bench) echoing(ctx context.Context) (got result, err error) {
	l, _, err := startServer(ctx, b.work, "", append(b.funnel(b.work), "--toolsets", "core,shell"))
	if err != nil {
		return got, err
	}
	defer l.end()
	var ours, peer []time.Duration
	for n := range 200 {
		line := fmt.Sprint("echo ", n)
		answer, took, err := l.call(toolCall(n+1, "run", map[string]any{"command": line}))
		if err == nil {
			err = failed(answer)
		}
		began := time.Now()
		if _, e := exec.CommandContext(ctx, "sh", "-c", line).Output(); err != nil || e != nil {
			return got, errors.Join(err, e)
		}
		ours, peer = append(ours, took), append(peer, time.Since(began))
	}
	got.ours = []time.Duration{max(median(ours)-median(peer), 1)}
	got.note = fmt.Sprintf("%s each, sh -c %s", span(median(ours)), span(median(peer)))
	return got, nil
}

// wrapping measures how much longer an answer of 10 MB takes through wrap than by the same server alone, in the median
// of calls that take turns. The receipt must have the digest of the file that the server reads.
func (b *bench) wrapping(ctx context.Context) (got result, err error) {
	file, _, err := b.log(10 << 20)
	if err != nil {
		return got, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return got, err
	}
	alone := filepath.Join(b.bin, "gosdkserver")
	wrap := []string{filepath.Join(b.bin, "mcp-funnel"), "--store", filepath.Join(b.work, "store"), "--min-free", "0",
		"wrap", "--", alone}
	var times [2][]time.Duration
	var links [2]*link
	for i, command := range [][]string{wrap, {alone}} {
		if links[i], _, err = startServer(ctx, b.work, "", command); err != nil {
			return got, err
		}
		defer links[i].end()
	}
	read := toolCall(1, "read", map[string]any{"path": file})
	digest := fmt.Sprintf("%x", sha256.Sum256(text))
	err = interleave(4*b.rounds, len(links), func(i, round int) (bool, error) {
		answer, took, err := links[i].call(read)
		switch {
		case err != nil:
			return false, err
		case i == 0 && !bytes.Contains(answer, []byte(digest)), i == 1 && len(answer) < len(text):
			return false, fmt.Errorf("another answer: %.300s", answer)
		case round > 0: // the first one warms up
			times[i] = append(times[i], took)
		}
		return false, nil
	})
	if err != nil {
		return got, err
	}
	ours, peer := median(times[0]), median(times[1])
	got.ours, got.peer = []time.Duration{max(ours-peer, 1)}, []time.Duration{peer}
	got.note = "go-sdk, by wrap in " + span(ours)
	return got, nil
}
