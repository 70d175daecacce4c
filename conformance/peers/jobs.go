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
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// job runs work of a library in a process of its own, so that its memory can be measured. It prints the duration in
// nanoseconds and a number to compare.
func job(ctx context.Context, name string, args []string) error {
	jobs := map[string]func(context.Context, string) (time.Duration, int, error){
		"latency": addedLatency, "count": counter(ownCounter).counting, "count-peer": counter(
			sync.OnceValues(tiktokenGo),
		).counting,
		"init": counter(ownCounter).first, "init-peer": counter(tiktokenGo).first,
	}
	do := jobs[name]
	if do == nil || len(args) != 1 {
		return errors.New("usage: peers job NAME FILE")
	}
	took, n, err := do(ctx, args[0])
	if err == nil {
		_, err = fmt.Println(int64(took), n)
	}
	return err
}

// tookJob parses the duration from a job's output.
func tookJob(said string) (time.Duration, error) {
	var nanos int64
	_, err := fmt.Sscan(said, &nanos)
	return time.Duration(nanos), err
}

// sameJob compares the numbers of two jobs.
func sameJob(ours, peer string) error {
	a, b := strings.Fields(ours), strings.Fields(peer)
	if len(a) != 2 || len(b) != 2 || a[1] != b[1] {
		return fmt.Errorf("%q and %q", ours, peer)
	}
	return nil
}

// counter makes a new token counter with empty caches.
type counter func() (func(string) int, error)

func ownCounter() (func(string) int, error) { return tokens.New(tokens.O200k).Count, nil }

func tiktokenGo() (func(string) int, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	c, err := tiktoken.GetEncoding(string(tokens.O200k))
	return func(text string) int { return len(c.EncodeOrdinary(text)) }, err
}

// counting returns the shortest of up to three counts of a file; counts start only within the first tenth of a
// second. Before each count it warms the counter up with the beginning of the text. A tiktoken-go counter is made
// only once: it has no cache of counts.
func (of counter) counting(_ context.Context, path string) (took time.Duration, n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	s := string(text)
	for first, i := time.Now(), 0; i == 0 || i < 3 && time.Since(first) < 100*time.Millisecond; i++ {
		count, err := of()
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

// first returns the time to make a counter and to count a first text.
func (of counter) first(context.Context, string) (time.Duration, int, error) {
	began := time.Now()
	count, err := of()
	if err != nil {
		return 0, 0, err
	}
	n := count("the first text of a process")
	return time.Since(began), n, nil
}

// addedLatency measures one call of a tool that writes a text at once, on a server with default settings: the text is
// kept, hashed, counted, summarized, masked, and answered with a receipt. The tool itself takes negligible time. It
// measures the second call of the process, because a real server is warm.
func addedLatency(ctx context.Context, path string) (took time.Duration, total int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.MkdirTemp(os.Getenv("PEERS_WORK"), "store-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: -1})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := funnel.New(
		funnel.Options{Store: store, Counter: tokens.New(tokens.O200k), Mask: secrets.New(), SavedTo: true},
	)
	if err != nil {
		return 0, 0, err
	}
	type none struct{}
	fetch := tools.New(tools.Tool{Name: "fetch", Title: "Fetch", Description: "Writes a text."}, func(_ context.Context, _ none, _ tools.Input, out tools.Output) error {
		_, err := out.Write(text)
		return err
	})
	for range 2 {
		began := time.Now()
		a, err := f.Call(
			ctx,
			funnel.Request{
				Tool: fetch, Args: json.RawMessage("{}"), Who: funnel.Session{ID: "local", Owner: observations.Local},
			},
		)
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
