package tokens

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/tokens/tables"
)

// Two pieces have one key only where they are one piece, whatever follows them.
func TestKeysDiffer(t *testing.T) {
	short := rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x01ab\xff")), 1, memoPiece)
	rapid.Check(t, func(t *rapid.T) {
		a, b := short.Draw(t, "a"), short.Draw(t, "b")
		if i := rapid.IntRange(0, len(a)).Draw(t, "near"); i < len(a) {
			b = bytes.Clone(a)
			b[i] ^= 1
		}
		after := rapid.SliceOfN(rapid.Byte(), 0, 20)
		aLow, aHigh := tables.Key(append(bytes.Clone(a), after.Draw(t, "after a")...), len(a))
		bLow, bHigh := tables.Key(append(bytes.Clone(b), after.Draw(t, "after b")...), len(b))
		if bytes.Equal(a, b) != (aLow == bLow && aHigh == bHigh) || aHigh>>memoCount&0xf != 0 {
			t.Fatalf("%q: %x %x; %q: %x %x", a, aHigh, aLow, b, bHigh, bLow)
		}
	})
}

// What a desk remembers changes no count: the first time, the second, and after another piece or pair took the place.
func TestADeskCountsAsANewOne(t *testing.T) {
	d := &desk{Vocabulary: tables.O200k()}
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("aetn 01=="))), 1, 2*longPiece).Draw(t, "piece")
		want := (&desk{Vocabulary: tables.O200k()}).count(piece)
		for range 2 {
			text := append(bytes.Clone(piece), "a beginning"...)
			if got := d.next(text, 0, len(piece)) + d.settle(text); got != want {
				t.Fatalf("%q: %d, want %d", piece, got, want)
			}
		}
	})
}

// A short piece is the same number of tokens merged as laid side by side.
func TestMergedAsLaid(t *testing.T) {
	for _, v := range []*tables.Vocabulary{tables.O200k(), tables.CL100k()} {
		rapid.Check(t, func(t *rapid.T) {
			d := &desk{Vocabulary: v}
			piece := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("aetnQZ01= \n\t"))), 1, tables.MergeMax).Draw(t, "piece")
			merged, laid := v.Merge(piece), d.layAll(piece)
			if merged != laid {
				t.Fatalf("%q: merged %d, laid %d", piece, merged, laid)
			}
			if key, _ := tables.Key(piece, len(piece)); len(piece) <= tables.FewMax && v.Few(key, len(piece)) != laid {
				t.Fatalf("%q: few are %d, laid %d", piece, v.Few(key, len(piece)), laid)
			}
		})
	}
}

// A piece of up to four bytes is as many tokens told at once as merged.
func TestFewAsMerged(t *testing.T) {
	promise.OrdinaryRun(t)
	const least, signs = ' ', '~' + 1 - ' '
	for _, v := range []*tables.Vocabulary{tables.O200k(), tables.CL100k()} {
		for i := range signs * signs * signs {
			piece := []byte{least + byte(i%signs), least + byte(i/signs%signs), least + byte(i/signs/signs), "aeZ0 ="[i%6]}
			for n := 1; n <= tables.FewMax; n++ {
				key, _ := tables.Key(piece, n)
				if few, merged := v.Few(key, n), v.Merge(piece[:n]); few != merged {
					t.Fatalf("%q: few are %d, merged %d", piece[:n], few, merged)
				}
			}
		}
	}
}
