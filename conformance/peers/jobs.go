//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/secrets"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// job is work of a library, in a process of its own so that its memory can be told: it prints how many nanoseconds the
// work took, and a number to compare.
func job(ctx context.Context, name string, args []string) error {
	jobs := map[string]func(context.Context, string) (time.Duration, int, error){
		"latency": addedLatency, "count": countOurs, "count-peer": countPeer, "init": initOurs, "init-peer": initPeer,
		"sha256": hashOnly,
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

// tookJob reads what a job has printed.
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

// warm is the beginning of a text that is counted before the clock starts.
func warm(text string) string { return text[:min(len(text)/4, 64<<10)] }

func countOurs(_ context.Context, path string) (time.Duration, int, error) {
	return best(path, func() (func(string) int, error) { return tokens.New(tokens.O200k).Count, nil })
}

func countPeer(_ context.Context, path string) (time.Duration, int, error) {
	c, err := tiktokenGo()
	return best(path, func() (func(string) int, error) {
		return func(text string) int { return len(c.EncodeOrdinary(text)) }, err
	})
}

// best is the shortest of three counts of a file, or of as many as begin within a tenth of a second; each with a new
// counter, which remembers nothing of the one before.
func best(path string, counter func() (func(string) int, error)) (took time.Duration, n int, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	s := string(text)
	for first, i := time.Now(), 0; i == 0 || i < 3 && time.Since(first) < 100*time.Millisecond; i++ {
		count, err := counter()
		if err != nil {
			return 0, 0, err
		}
		count(warm(s))
		began := time.Now()
		n = count(s)
		if one := time.Since(began); i == 0 || one < took {
			took = one
		}
	}
	return took, n, nil
}

func tiktokenGo() (*tiktoken.Tiktoken, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	return tiktoken.GetEncoding(string(tokens.O200k))
}

const firstText = "the first text of a process"

func initOurs(context.Context, string) (time.Duration, int, error) {
	began := time.Now()
	n := tokens.New(tokens.O200k).Count(firstText)
	return time.Since(began), n, nil
}

func initPeer(context.Context, string) (time.Duration, int, error) {
	began := time.Now()
	c, err := tiktokenGo()
	if err != nil {
		return 0, 0, err
	}
	n := len(c.EncodeOrdinary(firstText))
	return time.Since(began), n, nil
}

// hashOnly takes the SHA-256 of a file as it comes; to read it is not counted.
func hashOnly(_ context.Context, path string) (took time.Duration, n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h, buf := sha256.New(), make([]byte, 256<<10)
	for {
		read, err := f.Read(buf)
		began := time.Now()
		h.Write(buf[:read])
		took += time.Since(began)
		n += read
		if errors.Is(err, io.EOF) {
			h.Sum(nil)
			return took, n, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}

// addedLatency is a call of a tool that writes a text at once, as a server with its defaults makes it: kept, hashed, counted,
// summed up, masked, and answered with a receipt. The tool itself takes no time worth telling. It is the second call of its
// process: a server has made others before.
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
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k), Mask: secrets.New(), SavedTo: true})
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
		a, err := f.Call(ctx, funnel.Request{Tool: fetch, Args: json.RawMessage("{}"), Who: funnel.Session{ID: "local", Owner: observations.Local}})
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
