package observations

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// slowIndex computes an index in the obvious way.
func slowIndex(text []byte) []block {
	var all []block
	for at := int64(0); at < int64(len(text)); at += blockSize {
		all = append(all, block{at: at})
	}
	for i, c := range text {
		if c == '\n' {
			all[i/blockSize].newlines++
		}
	}
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRune(text[i:])
		all[i/blockSize].runes++
		if end := i + n; end/blockSize > i/blockSize && end/blockSize < len(all) {
			all[end/blockSize].skip = int64(end % blockSize)
		}
		i += n
	}
	for i := 1; i < len(all); i++ {
		all[i].lines = all[i-1].lines + all[i-1].newlines
		all[i].chars = all[i-1].chars + all[i-1].runes
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
			text, bytes.Repeat([]byte(rapid.SampledFrom([]string{"x", "ab\n", "世", "\xff"}).Draw(t, "filler")), blockSize)...,
		)
		text = text[:len(text)/blockSize*blockSize]
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
		var whole, pieces indexer
		_, _ = whole.Write(text)
		for rest := text; len(rest) > 0; {
			n := min(
				len(rest), rapid.SampledFrom([]int{1, 2, 3, 5, 1000, blockSize - 1, blockSize, blockSize + 1}).Draw(t, "piece"),
			)
			if n == 1 && len(rest) > 5000 { // do not go through a block byte by byte
				n = len(rest)%blockSize + 1
			}
			_, _ = pieces.Write(rest[:min(n, len(rest))])
			rest = rest[min(n, len(rest)):]
		}
		file := whole.finish()
		if !bytes.Equal(file, pieces.finish()) {
			t.Fatal("the index depends on the pieces")
		}
		if int64(len(file)) > maxIndex(int64(len(text))) {
			t.Fatalf("index of %d bytes has %d, over %d", len(text), len(file), maxIndex(int64(len(text))))
		}
		x := value(parseIndex(file, int64(len(text))))
		var got []block
		for b := range x.blocks {
			got = append(got, b)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("index\n%v, want\n%v", got, want)
		}
		// Any changed byte in the file is detected.
		i := rapid.IntRange(0, len(file)-1).Draw(t, "damage")
		file[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := parseIndex(file, int64(len(text))); err == nil {
			t.Fatalf("byte %d of the index was changed, and it was taken", i)
		}
	})
}

func TestOffsets(t *testing.T) {
	s := open(t, Options{})
	check := func(t *rapid.T, text []byte) {
		r0 := value(s.Record(Provenance{Tool: "keep"}))
		_, _ = r0.Write(text)
		o := value(r0.Commit(Stats{}))
		if rapid.Bool().Draw(t, "index lost") {
			_ = os.Remove(dir(s, "observations/"+string(o.ID)+indexExt))
		}
		r := value(s.Open(Local, o.ID))
		defer func() { _ = s.Remove(Local, o.ID) }()
		defer func() { _ = r.Close() }()
		starts := []int64{0}
		for i, c := range text {
			if c == '\n' && i+1 < len(text) {
				starts = append(starts, int64(i)+1)
			}
		}
		line := rapid.Int64Range(-1, int64(len(starts))+2).Draw(t, "line")
		want := min(max(line, 1), int64(len(starts)))
		if offset, at, err := r.LineOffset(line); err != nil || at != want || offset != starts[want-1] {
			t.Fatalf(
				"LineOffset(%d) of %d lines = %d, %d, %v; want %d, %d", line, len(starts), offset, at, err, starts[want-1], want,
			)
		}
		var runes []int64
		for i := 0; i < len(text); {
			_, n := utf8.DecodeRune(text[i:])
			runes = append(runes, int64(i))
			i += n
		}
		runes = append(runes, int64(len(text)))
		char := rapid.Int64Range(-1, int64(len(runes))+2).Draw(t, "char")
		want = min(max(char, 0), int64(len(runes))-1)
		if offset, at, err := r.CharOffset(char); err != nil || at != want || offset != runes[want] {
			t.Fatalf("CharOffset(%d) of %d = %d, %d, %v; want %d, %d", char, len(runes), offset, at, err, runes[want], want)
		}
		if _, err := os.Stat(dir(s, "observations/"+string(o.ID)+indexExt)); len(text) > 0 && char > 0 && err != nil {
			t.Fatalf("the index was not made again: %v", err)
		}
	}
	cjk := corpus.CJK()[:2*blockSize+100]
	rapid.Check(t, func(t *rapid.T) {
		text := cjk
		if rapid.IntRange(0, 9).Draw(t, "CJK") > 0 {
			text = awkward(t)
		}
		check(t, text)
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("mfl1"), int64(0))
	var x indexer
	_, _ = x.Write(bytes.Repeat([]byte("世界\n"), 30_000))
	f.Add(x.finish(), x.size)
	f.Add(withChecksum([]byte("mfl1\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00")), int64(10))
	f.Fuzz(func(t *testing.T, file []byte, size int64) {
		x, err := parseIndex(file, size)
		if err != nil {
			return
		}
		x.find(func(block) bool { return false })
	})
}

func FuzzSidecar(f *testing.F) {
	const id = ID("k3v9q2m7x4ab")
	o := newObservation(id, Provenance{Tool: "search", Args: []byte(`{"pattern":"x"}`)}, newClock().at)
	o.File, o.SHA256 = dataName("search", o.Created, id, "txt"), sum(nil)
	b := value(o.encode(maxSidecar))
	f.Add(b)
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"v":1,"id":"k3v9q2m7x4ab","file":"../../x","bytes":-1}`))
	f.Add([]byte("{\"v\":1e999}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := decode(b, id)
		if err != nil {
			return
		}
		if of, ok := parseDataName(o.File); !ok || of != id || o.Bytes < 0 {
			t.Fatalf("taken: %+v", o)
		}
		stone, err := o.tombstone(whyAge, newClock().at).encode(maxTombstone)
		if err == nil && len(stone) > maxTombstone {
			t.Fatalf("a tombstone of %d bytes", len(stone))
		}
	})
}
