package funnel

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func TestBesideReadsInOrder(t *testing.T) {
	var free blocks
	var got []byte
	s := newBeside(&free, func(text []byte) { got = append(got, text...) })
	var want []byte
	for i := range 1000 {
		b := free.take()
		b.data = append(b.data, byte(i), byte(i>>8))
		want = append(want, b.data...)
		s.read(job{b.data, b})
		free.release(b)
	}
	s.settle()
	if !bytes.Equal(got, want) {
		t.Error("texts were read in another order, or overwritten")
	}
	if free.made > maxBlocks {
		t.Errorf("%d blocks were in use, at most %d", free.made, maxBlocks)
	}
	if free.end(); free.made != 0 {
		t.Errorf("%d blocks were not given back", free.made)
	}
}

// Blocks grow while some are in use, and what was made for a long output is not kept for short ones.
func TestBlocksGrow(t *testing.T) {
	var free blocks
	small := free.take()
	free.room = longChunk
	large := free.take()
	if cap(small.data) != chunk || cap(large.data) != longChunk {
		t.Errorf("%d, %d", cap(small.data), cap(large.data))
	}
	free.release(small)
	free.release(large)
	small, large = free.take(), free.take()
	if cap(small.data) != longChunk || cap(large.data) != longChunk || free.made != 2 {
		t.Errorf("%d, %d of %d", cap(small.data), cap(large.data), free.made)
	}
	free.release(small)
	free.release(large)
	if free.end(); free.made != 0 {
		t.Errorf("%d blocks were not given back", free.made)
	}
	for range 100 {
		if b := spareBlocks.Get().(*block); cap(b.data) != chunk {
			t.Fatalf("%d", cap(b.data))
		}
	}
}

func TestBesideWaitsForRoom(t *testing.T) {
	var free blocks
	gate := make(chan struct{})
	s := newBeside(&free, func([]byte) { <-gate })
	for range maxBlocks {
		b := free.take()
		s.read(job{nil, b})
		free.release(b)
	}
	got := make(chan *block)
	go func() { got <- free.take() }()
	select {
	case <-got:
		t.Fatal("a block was handed out that is being read")
	default:
	}
	close(gate)
	<-got
	s.settle()
}

// A panic beside the writer must neither end the process nor be lost: the call fails, and nothing is said to be kept.
func TestDefectBeside(t *testing.T) {
	text := corpus.JSON1MB()
	for name, late := range map[string]bool{"while it is written": false, "behind the last write": true} {
		t.Run(name, func(t *testing.T) {
			f := funnelOf(t, Options{Store: storeIn(t, observations.Options{})})
			broken := tool(tools.Tool{}, func(_ context.Context, out tools.Output) error {
				p := out.(*output).pass // of this package
				_, _ = out.Write(text[:2*chunk])
				p.settle()
				p.save.do = func([]byte) { panic("a defect") }
				n := len(text)
				if late {
					n = 3 * chunk
				}
				_, err := out.Write(text[2*chunk : n])
				return err
			})
			a, err := f.Call(t.Context(), Request{Args: json.RawMessage(`{}`), Tool: broken})
			if err != nil {
				t.Fatal(err)
			}
			if r := a.Receipts[0]; !a.Failed || r.Kept || r.Status != failure || !strings.Contains(a.Blocks[0].Text, "a defect in the tool") {
				t.Errorf("failed %v, receipt %+v, %.300s", a.Failed, r, a.Blocks[0].Text)
			}
		})
	}
}

// However an output is cut into writes, it is told, and kept, the same.
func TestPiecesDoNotMatter(t *testing.T) {
	f := funnelOf(t, Options{})
	text := slices.Concat(corpus.JSON1MB()[:900_000], []byte("\xff\xfe\x80"), corpus.CJK()[:200_000], corpus.PanicLog()[:200_001], corpus.WarAndPeace()[:700_000])
	want := viewOf(f, text)
	rapid.Check(t, func(t *rapid.T) {
		p := newPass(want.limits, f.o.Counter, f.o.Mask, want.holdLimit())
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.SampledFrom([]int{1, 7, 100, 4096, chunk - 1, chunk, chunk + 1, 300_000}).Draw(t, "piece"))
			for n < 100 && rapid.Bool().Draw(t, "again") && 2*n < len(rest) {
				n *= 2
			}
			n = max(n, len(rest)/50) // else it takes all day
			p.write(rest[:n])
			rest = rest[n:]
		}
		got := p.close()
		if got.lines != want.lines || got.chars != want.chars || got.bytes != want.bytes || got.longest != want.longest || got.total != want.total {
			t.Fatalf("%+v, not %+v", got.edges, want.edges)
		}
		if !slices.Equal(got.Body, want.Body) || !slices.Equal(got.Total, want.Total) || !bytes.Equal(p.hold, want.out.pass.hold) {
			t.Fatalf("another summary:\n%q\n%q", got.Body, want.Body)
		}
	})
}
