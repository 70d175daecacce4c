package backend

import (
	"bytes"
	"fmt"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// slowIndex computes an index in the obvious way.
func slowIndex(text []byte) []Block {
	var all []Block
	for at := int64(0); at < int64(len(text)); at += BlockSize {
		all = append(all, Block{At: at})
	}
	for i, c := range text {
		if c == '\n' {
			all[i/BlockSize].Newlines++
		}
	}
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRune(text[i:])
		all[i/BlockSize].Runes++
		if end := i + n; end/BlockSize > i/BlockSize && end/BlockSize < len(all) {
			all[end/BlockSize].Skip = int64(end % BlockSize)
		}
		i += n
	}
	for i := 1; i < len(all); i++ {
		all[i].Lines = all[i-1].Lines + all[i-1].Newlines
		all[i].Chars = all[i-1].Chars + all[i-1].Runes
	}
	return all
}

// awkward generates texts whose runes, valid and invalid, cross the ends of blocks.
func awkward(t *rapid.T) []byte {
	piece := rapid.SampledFrom(
		[]string{
			"\n", "a", "é", "世", "👩", "\xff", "\xe4", "\xe4\xb8", "\xf0\x9f\x91", "\x80", "\xed\xa0\x80", "\xc0\xaf",
			"\xf4\x90\x80\x80", "\r\n", "\x00",
		},
	)
	var text []byte
	for range rapid.IntRange(0, 2).Draw(t, "blocks") {
		text = append(
			text, bytes.Repeat([]byte(rapid.SampledFrom([]string{"x", "ab\n", "世", "\xff"}).Draw(t, "filler")), BlockSize)...,
		)
		text = text[:len(text)/BlockSize*BlockSize]
		text = text[:max(0, len(text)-rapid.IntRange(0, 6).Draw(t, "short by"))]
		for _, p := range rapid.SliceOfN(piece, 0, 8).Draw(t, "border") {
			text = append(text, p...)
		}
	}
	for _, p := range rapid.SliceOfN(piece, 0, 20).Draw(t, "end") {
		text = append(text, p...)
	}
	return text
}

func TestIndexIsTheSameInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := awkward(t)
		want := slowIndex(text)
		var whole, pieces Indexer
		_, _ = whole.Write(text)
		for rest := text; len(rest) > 0; {
			n := min(
				len(rest), rapid.SampledFrom([]int{1, 2, 3, 5, 1000, BlockSize - 1, BlockSize, BlockSize + 1}).Draw(t, "piece"),
			)
			if n == 1 && len(rest) > 5000 { // do not go through a block byte by byte
				n = len(rest)%BlockSize + 1
			}
			_, _ = pieces.Write(rest[:min(n, len(rest))])
			rest = rest[min(n, len(rest)):]
		}
		file := whole.Finish()
		if !bytes.Equal(file, pieces.Finish()) {
			t.Fatal("the index depends on the pieces")
		}
		if int64(len(file)) > MaxIndex(int64(len(text))) {
			t.Fatalf("index of %d bytes has %d, over %d", len(text), len(file), MaxIndex(int64(len(text))))
		}
		x := value(ParseIndex(file, int64(len(text))))
		var got []Block
		for b := range x.blocks {
			got = append(got, b)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("index\n%v, want\n%v", got, want)
		}
		// Any changed byte in the file is detected.
		i := rapid.IntRange(0, len(file)-1).Draw(t, "damage")
		file[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := ParseIndex(file, int64(len(text))); err == nil {
			t.Fatalf("byte %d of the index was changed, and it was taken", i)
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("mfl1"), int64(0))
	var x Indexer
	_, _ = x.Write(bytes.Repeat([]byte("世界\n"), 30_000))
	f.Add(x.Finish(), x.size)
	f.Add(withChecksum([]byte("mfl1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00")), int64(10))
	f.Fuzz(func(t *testing.T, file []byte, size int64) {
		x, err := ParseIndex(file, size)
		if err != nil {
			return
		}
		x.Find(func(Block) bool { return false })
	})
}

func FuzzSidecar(f *testing.F) {
	const id = ID("k3v9q2m7x4ab")
	o := NewObservation(id, Provenance{Tool: "search", Args: []byte(`{"pattern":"x"}`)}, at)
	o.File, o.SHA256 = DataName("search", o.Created, id, "txt"), sum(nil)
	b := value(o.Encode(MaxSidecar))
	f.Add(b)
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":1,"id":"k3v9q2m7x4ab","file":"../../x","bytes":-1}`))
	f.Add([]byte("{\"v\":1e999}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := Decode(b, id)
		if err != nil {
			return
		}
		if of, ok := ParseDataName(o.File); !ok || of != id || o.Bytes < 0 {
			t.Fatalf("taken: %+v", o)
		}
		stone, err := o.Tombstone(WhyAge, at).Encode(MaxTombstone)
		if err == nil && len(stone) > MaxTombstone {
			t.Fatalf("a tombstone of %d bytes", len(stone))
		}
	})
}
