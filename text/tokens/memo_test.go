package tokens

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens/tables"
)

// Different pieces have different keys, whatever follows them.
func TestKeysDiffer(t *testing.T) {
	short := rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x01ab\xff")), 1, memoPiece)
	rapid.Check(t, func(t *rapid.T) {
		a, b := short.Draw(t, "a"), short.Draw(t, "b")
		if i := rapid.IntRange(0, len(a)).Draw(t, "near"); i < len(a) {
			b = bytes.Clone(a)
			b[i] ^= 1
		}
		after := rapid.SliceOfN(rapid.Byte(), 0, 20)
		aLow, aHigh := keyOf(append(bytes.Clone(a), after.Draw(t, "after a")...), len(a))
		bLow, bHigh := keyOf(append(bytes.Clone(b), after.Draw(t, "after b")...), len(b))
		if bytes.Equal(a, b) != (aLow == bLow && aHigh == bHigh) || aHigh>>memoCount&0xf != 0 {
			t.Fatalf("%q: %x %x; %q: %x %x", a, aHigh, aLow, b, bHigh, bLow)
		}
	})
}

// Remembered results do not change a count: not the first time, not the second, and not after another piece or pair
// took the slot.
func TestADeskCountsAsANewOne(t *testing.T) {
	d := &pieceCounter{Vocabulary: tables.O200k()}
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(
			rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("aetn 01=="))), 1, 120,
		).Draw(t, "piece")
		want := (&pieceCounter{Vocabulary: tables.O200k()}).countTokens(piece)
		for range 2 {
			text := append(bytes.Clone(piece), "a beginning"...)
			expect.MustEqual(t, d.countPiece(text, 0, len(piece)), want, piece)
		}
	})
}

// A short piece has as many tokens merged as tiled.
func TestMergedAsLaid(t *testing.T) {
	for _, v := range []*tables.Vocabulary{tables.O200k(), tables.CL100k()} {
		rapid.Check(t, func(t *rapid.T) {
			d := &pieceCounter{Vocabulary: v}
			piece := rapid.SliceOfN(
				rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("aetnQZ01= \n\t"))), 1, tables.MergeMax,
			).Draw(t, "piece")
			merged, laid := v.Merge(piece), d.tile(piece)
			expect.MustEqual(t, merged, laid, "%q: merged, laid", piece)
		})
	}
}
