package tokens

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// Two pieces have one key only where they are one piece.
func TestKeysDiffer(t *testing.T) {
	short := rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x01ab\xff")), 1, memoPiece)
	rapid.Check(t, func(t *rapid.T) {
		a, b := short.Draw(t, "a"), short.Draw(t, "b")
		if i := rapid.IntRange(0, len(a)).Draw(t, "near"); i < len(a) {
			b = bytes.Clone(a)
			b[i] ^= 1
		}
		aLow, aHigh := key(a)
		bLow, bHigh := key(b)
		if bytes.Equal(a, b) != (aLow == bLow && aHigh == bHigh) || aHigh>>memoCount&0xf != 0 {
			t.Fatalf("%q: %x %x; %q: %x %x", a, aHigh, aLow, b, bHigh, bLow)
		}
	})
}

// A memo answers as its vocabulary does, at the first time, at the second, and after another took the place.
func TestMemoCountsAsTheVocabulary(t *testing.T) {
	v := New(O200k).vocabulary()
	var m memo
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("aetn 01"))), 1, memoPiece+2).Draw(t, "piece")
		want := v.count(piece)
		for range 2 {
			if got := m.count(v, piece); got != want {
				t.Fatalf("%q: %d, want %d", piece, got, want)
			}
		}
	})
}
