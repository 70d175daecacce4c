package observations

import (
	"bytes"
	"os"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
)

func TestOffsets(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		s := open(t, Options{})
		check := func(t *rapid.T, text []byte) {
			r0 := value(s.Record(Provenance{Tool: "keep"}))
			_, _ = r0.Write(text)
			o := value(r0.Commit(Stats{}))
			if rapid.Bool().Draw(t, "index lost") && onDisk(s) {
				_ = os.Remove(dir(s, "observations/"+string(o.ID)+".lines"))
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
					"LineOffset(%d) of %d lines = %d, %d, %v; want %d, %d", line, len(starts), offset, at, err,
					starts[want-1], want,
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
			if !onDisk(s) || len(text) == 0 || char <= 0 {
				return
			}
			if _, err := os.Stat(dir(s, "observations/"+string(o.ID)+".lines")); err != nil {
				t.Fatalf("the index was not made again: %v", err)
			}
		}
		cjk := corpus.CJK()[:2*backend.BlockSize+100]
		rapid.Check(t, func(t *rapid.T) {
			text := cjk
			if rapid.IntRange(0, 9).Draw(t, "CJK") > 0 {
				text = awkward(t)
			}
			check(t, text)
		})
	})
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
		filler := rapid.SampledFrom([]string{"x", "ab\n", "世", "\xff"}).Draw(t, "filler")
		text = append(text, bytes.Repeat([]byte(filler), backend.BlockSize)...)
		text = text[:len(text)/backend.BlockSize*backend.BlockSize]
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
