package funnel

import (
	"encoding/json"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// BenchmarkReceipt is a whole call with a large output: capture, masker, store, receipt.
func BenchmarkReceipt(b *testing.B) { benchReceipt(b, secrets.New()) }

// BenchmarkUnmasked is the same without the masker, for what that costs.
func BenchmarkUnmasked(b *testing.B) { benchReceipt(b, nil) }

func benchReceipt(b *testing.B, mask *secrets.Masker) {
	for _, k := range corpus.Kinds {
		b.Run(k.Name, func(b *testing.B) {
			s := storeIn(b, observations.Options{})
			f := funnelOf(b, Options{Store: s, Mask: mask})
			in := k.Text()
			r := Request{Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, writes(in))}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				a, err := f.Call(b.Context(), r)
				if err != nil || !a.Receipts[0].Kept {
					b.Fatalf("%v %+v", err, a.Receipts)
				}
				b.StopTimer()
				if err := s.Remove(observations.Local, observations.ID(a.Receipts[0].ObservationID)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkSmall is a call whose output is passed on: what every call costs at least.
func BenchmarkSmall(b *testing.B) {
	f := funnelOf(b, Options{Store: storeIn(b, observations.Options{})})
	r := Request{
		Args: json.RawMessage(`{}`), Tool: tool(tools.Tool{}, writes([]byte("one line of output\nand another\n"))),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Call(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
