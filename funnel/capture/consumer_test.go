package capture

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

func TestConsumerKeepsTheOrder(t *testing.T) {
	var free blockPool
	var got []byte
	s := newAsyncConsumer(&free, func(text []byte) { got = append(got, text...) })
	var want []byte
	for i := range 1000 {
		b := free.acquire()
		b.data = append(b.data, byte(i), byte(i>>8))
		want = append(want, b.data...)
		s.enqueue(chunkRef{b.data, b})
		free.release(b)
	}
	s.wait()
	if !bytes.Equal(got, want) {
		t.Error("texts were consumed in another order, or overwritten")
	}
	if free.allocated > maxBlocks {
		t.Errorf("%d blocks were in use, at most %d", free.allocated, maxBlocks)
	}
	if free.close(); free.allocated != 0 {
		t.Errorf("%d blocks were not given back", free.allocated)
	}
}

// Blocks grow while some are in use, and blocks of a long output are not reused for short ones.
func TestBlocksGrow(t *testing.T) {
	var free blockPool
	small := free.acquire()
	free.blockSize = longChunkSize
	large := free.acquire()
	if cap(small.data) != chunkSize || cap(large.data) != longChunkSize {
		t.Errorf("%d, %d", cap(small.data), cap(large.data))
	}
	free.release(small)
	free.release(large)
	small, large = free.acquire(), free.acquire()
	if cap(small.data) != longChunkSize || cap(large.data) != longChunkSize || free.allocated != 2 {
		t.Errorf("%d, %d of %d", cap(small.data), cap(large.data), free.allocated)
	}
	free.release(small)
	free.release(large)
	if free.close(); free.allocated != 0 {
		t.Errorf("%d blocks were not given back", free.allocated)
	}
	for range 100 {
		if b := idleBlocks.Get().(*block); cap(b.data) != chunkSize {
			t.Fatalf("%d", cap(b.data))
		}
	}
}

func TestWriterWaitsForABlock(t *testing.T) {
	var free blockPool
	gate := make(chan struct{})
	s := newAsyncConsumer(&free, func([]byte) { <-gate })
	for range maxBlocks {
		b := free.acquire()
		s.enqueue(chunkRef{nil, b})
		free.release(b)
	}
	got := make(chan *block)
	go func() { got <- free.acquire() }()
	select {
	case <-got:
		t.Fatal("a block was handed out that is being read")
	default:
	}
	close(gate)
	<-got
	s.wait()
}

// A panic of a consumer must neither end the process nor be lost: it shows in the next write, or when the writer is
// closed, and nothing is recorded.
func TestConsumerPanics(t *testing.T) {
	store, err := observations.OpenStore(observations.Options{Dir: t.TempDir(), MinFree: 1 << 20})
	expect.Must(t, err)
	text := corpus.JSON1MB()
	for name, late := range map[string]bool{"while it is written": false, "behind the last write": true} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(64 << 10)
			w.RecordWith(func() (*observations.Recording, error) {
				return store.Record(observations.Provenance{Owner: observations.Local, Tool: "fetch"})
			})
			_, _ = w.Write(text[:2*chunkSize])
			w.wait()
			written := make(chan struct{}) // the consumer panics after the last write has returned
			w.saver.consume = func([]byte) {
				if late {
					<-written
				}
				panic("a defect")
			}
			if late {
				_, _ = w.Write(text[2*chunkSize : 3*chunkSize])
				close(written)
			} else if !panicked(func() { _, _ = w.Write(text[2*chunkSize:]) }) {
				t.Error("the write does not panic")
			}
			c := w.Close()
			if r, err := c.Recording(); c.Failure == nil || r != nil || !errors.Is(err, ErrDefect) {
				t.Errorf("failure %v, recording %v, %v", c.Failure, r, err)
			}
		})
	}
}

func panicked(run func()) (did bool) {
	defer func() { did = recover() != nil }()
	run()
	return false
}

func newWriter(hold int) *Writer {
	return NewWriter(Options{HeadLines: 10, TailLines: 5, Hold: hold, Counter: tokens.New(tokens.O200k)})
}

// However an output is divided into writes, what is captured is the same.
func TestPiecesDoNotMatter(t *testing.T) {
	text := slices.Concat(
		corpus.JSON1MB()[:300_000], []byte("\xff\xfe\x80"), corpus.CJK()[:70_000], corpus.PanicLog()[:70_001],
		corpus.WarAndPeace()[:240_000],
	)
	const hold = 160_000
	whole := newWriter(hold)
	_, _ = whole.Write(text)
	want := whole.Close()
	rapid.Check(t, func(t *rapid.T) {
		w := newWriter(hold)
		for rest := text; len(rest) > 0; {
			n := min(
				len(rest),
				rapid.SampledFrom([]int{1, 7, 100, 4096, chunkSize - 1, chunkSize, chunkSize + 1, 300_000}).Draw(t, "piece"),
			)
			for n < 100 && rapid.Bool().Draw(t, "again") && 2*n < len(rest) {
				n *= 2
			}
			n = max(n, len(rest)/50) // else it takes all day
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		got := w.Close()
		if got.Lines != want.Lines || got.Chars != want.Chars || got.Bytes != want.Bytes ||
			got.LongestLine != want.LongestLine || got.Tokens != want.Tokens {
			t.Fatalf("%+v, not %+v", got, want)
		}
		a, _ := got.Beginning()
		b, _ := want.Beginning()
		if !slices.Equal(got.Summary().Body, want.Summary().Body) ||
			!slices.Equal(got.Summary().Total, want.Summary().Total) || !bytes.Equal(a, b) {
			t.Fatalf("another summary:\n%q\n%q", got.Summary().Body, want.Summary().Body)
		}
	})
}
