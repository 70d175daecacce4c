//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// jobs returns a pair of jobs, each run on the same file in a process of its own.
func (b *bench) jobs(ours, peer, path string, work float64) (*pair, error) {
	self, err := os.Executable()
	job := func(name string) *command {
		return &command{b: b, dir: b.work, words: []string{self, "job", name, path}, timeIn: jobTime}
	}
	return &pair{ours: job(ours), peer: job(peer), same: sameJob, work: work}, err
}

// job runs work of a library, in a process of its own so that its memory can be measured. It prints the duration in
// nanoseconds and a number to compare.
func job(ctx context.Context, name, path string) (err error) {
	var took time.Duration
	var n int
	switch name {
	case "latency":
		took, n, err = addedLatency(ctx, path)
	case "count":
		took, n, err = countFile(ownCounter, path)
	case "count-peer": // made only once: it has no cache of counts
		took, n, err = countFile(sync.OnceValues(tiktokenCounter), path)
	case "init":
		took, n, err = firstCount(ownCounter)
	case "init-peer":
		took, n, err = firstCount(tiktokenCounter)
	default:
		err = fmt.Errorf("no job %q", name)
	}
	if err == nil {
		_, err = fmt.Println(int64(took), n)
	}
	return err
}

// jobTime parses the duration from a job's output.
func jobTime(output string) (took time.Duration, err error) {
	_, err = fmt.Sscan(output, (*int64)(&took))
	return took, err
}

// sameJob compares the numbers of two jobs.
func sameJob(ours, peer string) error {
	a, b := strings.Fields(ours), strings.Fields(peer)
	if len(a) != 2 || len(b) != 2 || a[1] != b[1] {
		return fmt.Errorf("%q and %q", ours, peer)
	}
	return nil
}

// newCounter makes a token counter with empty caches.
type newCounter func() (func(string) int, error)

func ownCounter() (func(string) int, error) { return tokens.New(tokens.O200k).Count, nil }

func tiktokenCounter() (func(string) int, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	c, err := tiktoken.GetEncoding(string(tokens.O200k))
	return func(text string) int { return len(c.EncodeOrdinary(text)) }, err
}

// countFile returns the shortest of up to three counts of a file; counts start only within the first tenth of a
// second. Before each count it warms the counter up with the beginning of the text.
func countFile(make newCounter, path string) (took time.Duration, n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	s := string(text)
	for first, i := time.Now(), 0; i == 0 || i < 3 && time.Since(first) < 100*time.Millisecond; i++ {
		count, err := make()
		if err != nil {
			return 0, 0, err
		}
		count(s[:min(len(s)/4, 64<<10)])
		began := time.Now()
		n = count(s)
		if one := time.Since(began); i == 0 || one < took {
			took = one
		}
	}
	return took, n, nil
}

// firstCount returns the time to make a counter and to count a first text.
func firstCount(make newCounter) (time.Duration, int, error) {
	began := time.Now()
	count, err := make()
	if err != nil {
		return 0, 0, err
	}
	n := count("the first text of a process")
	return time.Since(began), n, nil
}

// addedLatency measures one call of a tool that writes a text at once, on a server with default settings: the text is
// stored, hashed, counted, summarized, masked, and answered with a receipt. The tool itself takes negligible time. It
// measures the second call of the process, because a real server is warm.
func addedLatency(ctx context.Context, path string) (took time.Duration, total int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.MkdirTemp(".", "store-") // in the directory of this run, on the same disk as the inputs
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	counter := tokens.New(tokens.O200k)
	f, err := funnel.New(funnel.Options{Store: store, Counter: counter, Mask: secrets.New(), SavedTo: true})
	if err != nil {
		return 0, 0, err
	}
	write := func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
		_, err := out.Write(text)
		return err
	}
	request := funnel.Request{
		Tool: tools.New(tools.Tool{Name: "fetch", Title: "Fetch", Description: "Writes a text."}, write),
		Args: json.RawMessage("{}"), Who: funnel.Session{ID: "local", Owner: observations.Local},
	}
	for range 2 {
		began := time.Now()
		a, err := f.Call(ctx, request)
		took = time.Since(began)
		if err != nil {
			return 0, 0, err
		}
		if a.Failed || len(a.Receipts) != 1 || !a.Receipts[0].Kept {
			return 0, 0, fmt.Errorf("not kept: %+v", a)
		}
		total = int(a.Receipts[0].Tokens)
	}
	return took, total, nil
}
