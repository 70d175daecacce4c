package funnel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// BenchmarkAdded measures the time that the funnel adds to a tool that writes JSON, and the time of cat > file for the
// same bytes. The two run in turn; it reports the medians of all rounds. At 50 MB tokens are sampled. Run it with -benchtime 7x.
func BenchmarkAdded(b *testing.B) {
	for _, in := range []struct {
		name string
		text func() []byte
	}{
		{"1MB", corpus.JSON1MB},
		{"5MB", func() []byte { return corpus.JSON5MB() }},
		{"50MB", func() []byte { return jsonOf(10, corpus.JSON5MB()) }},
	} {
		b.Run(in.name, func(b *testing.B) {
			text := in.text()
			f := funnelOf(b, Options{Store: storeIn(b, observations.Options{}), Mask: secrets.New()})
			r := Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, writes(text))}
			from := filepath.Join(b.TempDir(), "in.json")
			if err := os.WriteFile(from, text, 0o600); err != nil {
				b.Fatal(err)
			}
			var ours, peers []time.Duration
			for b.Loop() {
				began := time.Now()
				a, err := f.Call(b.Context(), r)
				ours = append(ours, time.Since(began))
				if err != nil || !a.Receipts[0].Kept {
					b.Fatalf("%v %+v", err, a.Receipts)
				}
				if err := f.options.Store.Remove(observations.Local, observations.ID(a.Receipts[0].ObservationID)); err != nil {
					b.Fatal(err)
				}
				peers = append(peers, cat(b, from))
			}
			slices.Sort(ours)
			slices.Sort(peers)
			added, peer := ours[len(ours)/2], peers[len(peers)/2]
			b.ReportMetric(float64(added.Microseconds())/1000, "ms-added")
			b.ReportMetric(float64(peer.Microseconds())/1000, "ms-cat")
			b.ReportMetric(float64(added)/float64(peer), "of-cat")
			b.ReportMetric(float64(added.Milliseconds())/(float64(len(text))/1e6), "ms/MB")
		})
	}
}

// jsonOf is one array of the elements of n copies of another.
func jsonOf(n int, array []byte) []byte {
	elements := bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(array), []byte("[")), []byte("]"))
	out := []byte("[")
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, elements...)
	}
	return append(out, ']')
}

// cat is how long cat FILE > FILE takes.
func cat(b *testing.B, from string) time.Duration {
	to := from + ".cat"
	out, err := os.Create(to)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.Remove(to) }()
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(b.Context(), "cat", from)
	cmd.Stdout = out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		b.Skip(fmt.Errorf("cat: %w", err))
	}
	return time.Since(began)
}
