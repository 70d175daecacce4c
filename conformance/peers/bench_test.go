// Package peers has the benchmarks of rows of docs/SPEED.md that no command can run: scripts/bench-peers runs each in a
// process of its own, so that its memory can be measured. Variables of the environment name their inputs.
package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// input returns the text that TEXT names, a file or one of the corpus, repeated or cut to SIZE bytes if that is set.
func input(b *testing.B) string {
	b.Helper()
	var text []byte
	switch name := os.Getenv("TEXT"); name {
	case "":
		b.Skip("TEXT names no input")
	case "prose":
		text = corpus.WarAndPeace()
	case "diff":
		text = corpus.WarAndPeaceDiff()
	case "CJK":
		text = corpus.CJK()
	default:
		text = expect.Value(os.ReadFile(name))(b)
	}
	var size int
	if _, err := fmt.Sscan(os.Getenv("SIZE"), &size); err == nil {
		text = bytes.Repeat(text, 1+size/len(text))[:size]
	}
	return strings.ToValidUTF8(string(text), "")
}

// counters make a token counter with empty caches: ours, and that of the peer.
var counters = map[string]func(b *testing.B) func(string) int{
	"ours": func(*testing.B) func(string) int { return tokens.New(tokens.O200k).Count },
	"peer": func(b *testing.B) func(string) int {
		tiktoken.SetBpeLoader(loader.NewOfflineLoader())
		c := expect.Value(tiktoken.GetEncoding(string(tokens.O200k)))(b)
		return func(text string) int { return len(c.EncodeOrdinary(text)) }
	},
}

// BenchmarkCount counts the tokens of the input, by a counter that the beginning of the text has warmed up.
func BenchmarkCount(b *testing.B) {
	for name, counter := range counters {
		b.Run(name, func(b *testing.B) {
			text, n := input(b), 0
			for b.Loop() {
				b.StopTimer()
				count := counter(b)
				count(text[:min(len(text)/4, 64<<10)])
				b.StartTimer()
				n = count(text)
			}
			b.ReportMetric(float64(n), "tokens")
		})
	}
}

// BenchmarkFirst makes a counter and counts a first text. Only the first run of a process says something.
func BenchmarkFirst(b *testing.B) {
	for name, counter := range counters {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = counter(b)("the first text of a process")
			}
			b.ReportMetric(float64(n), "tokens")
		})
	}
}

// BenchmarkLatency calls a tool that writes the input at once, on a server with default settings: the text is stored,
// hashed, counted, summarized, masked, and answered with a receipt. The tool itself takes negligible time. A first call
// is not measured, because a real server is warm.
func BenchmarkLatency(b *testing.B) {
	text := []byte(input(b))
	store := expect.Value(observations.OpenStore(observations.Options{Dir: b.TempDir(), MinFree: -1}))(b)
	defer func() { _ = store.Close() }()
	f := expect.Value(funnel.New(funnel.Options{
		Store: store, Counter: tokens.New(tokens.O200k), Mask: secrets.New(), SavedTo: true,
	}))(b)
	write := func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
		_, err := out.Write(text)
		return err
	}
	request := funnel.Request{
		Tool: tools.New(tools.Tool{Name: "fetch", Title: "Fetch", Description: "Writes a text."}, write),
		Args: json.RawMessage("{}"), Who: funnel.Session{ID: "local", Owner: observations.Local},
	}
	total := 0
	call := func() {
		a, err := f.Call(b.Context(), request)
		if err != nil || a.Failed || len(a.Receipts) != 1 || !a.Receipts[0].Kept {
			b.Fatalf("not kept: %+v, %v", a, err)
		}
		total = int(a.Receipts[0].Tokens)
	}
	call()
	for b.Loop() {
		call()
	}
	b.ReportMetric(float64(total), "tokens")
}

// BenchmarkEstimates compares estimated with exact counts of the files that TEXTS names, and of five texts of parts of
// all kinds. It reports the 95th percentile of the errors, how many of the intervals held, and their median margin.
func BenchmarkEstimates(b *testing.B) {
	names := strings.Fields(os.Getenv("TEXTS"))
	if len(names) == 0 {
		b.Skip("TEXTS names no inputs")
	}
	c := tokens.New(tokens.O200k)
	var errs, margins []float64
	within := 0
	estimate := func(text []byte) {
		t := c.Tally()
		_, _ = t.Write(text) // never fails
		total, exact := t.Total(), float64(c.Count(string(text)))
		off := math.Abs(float64(total.N)-exact) / exact
		errs, margins = append(errs, 100*off), append(margins, 100*total.Margin)
		if off <= total.Margin {
			within++
		}
	}
	for _, name := range names {
		text := expect.Value(os.ReadFile(name))(b)
		estimate(text)
	}
	for seed := range uint64(5) {
		estimate(mixed(24<<20, seed))
	}
	slices.Sort(errs)
	slices.Sort(margins)
	b.ReportMetric(float64(len(errs)), "texts")
	b.ReportMetric(float64(within), "held")
	b.ReportMetric(margins[len(margins)/2], "margin")
	b.ReportMetric(errs[(len(errs)*95-1)/100], "%")
	b.ReportMetric(0, "ns/op")
}

// mixed returns parts of all kinds, 1 kB to 1 MB each.
func mixed(size int, seed uint64) (text []byte) {
	r := rand.New(rand.NewPCG(seed, 9))
	parts := [][]byte{
		corpus.WarAndPeace(), corpus.JSON5MB(), corpus.CJK(), corpus.PanicLog(), corpus.CSV20k(),
		corpus.WarAndPeaceDiff(), fmt.Appendf(nil, "%x", corpus.Random(1<<19)),
	}
	for len(text) < size {
		part := parts[r.IntN(len(parts))]
		n := min(1000+r.IntN(1_000_000), len(part))
		at := r.IntN(len(part) - n + 1)
		text = append(text, bytes.ToValidUTF8(part[at:at+n], nil)...)
	}
	return text
}

// BenchmarkRecord stores observations of about 3 KB, unused for two hours, in the directory that STORE names: a store
// for the rows of stores.
func BenchmarkRecord(b *testing.B) {
	dir := os.Getenv("STORE")
	if dir == "" {
		b.Skip("STORE names no directory")
	}
	old := func() time.Time { return time.Now().Add(-2 * time.Hour) }
	s := expect.Value(observations.OpenStore(observations.Options{Dir: dir, MinFree: -1, Now: old}))(b)
	i := 0
	for b.Loop() {
		r := expect.Value(s.Record(observations.Provenance{
			Owner: observations.Local, Tool: "read", Args: fmt.Appendf(nil, `{"source":"src/%d.go"}`, i),
		}))(b)
		for j := range 30 + i%60 {
			line := fmt.Sprintf("%d: line %d of a text with words, status=%d\n", i, j, (7*i+j)%600)
			if j == 20 && i%100 == 0 {
				line = "deadline exceeded\n"
			}
			_, _ = r.Write([]byte(line)) // an error is that of Commit, too
		}
		seen := observations.Stats{Kind: "text", Ext: "txt", Receipt: strings.Repeat("LARGE OUTPUT ", 60)}
		expect.Value(r.Commit(seen))(b)
		i++
	}
	expect.Must(b, s.Close())
}
