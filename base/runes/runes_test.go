package runes

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

func FuzzCount(f *testing.F) {
	f.Add([]byte("a\nb\r\n"), byte(1))
	f.Add([]byte("数据 \xff\xe6\x96 äöü\n"), byte(40))
	f.Add([]byte("\x80\xbf\xc0\xc1\x0a"), byte(99))
	f.Fuzz(func(t *testing.T, p []byte, times byte) { check(t, bytes.Repeat(p, int(times))) })
}

func check(t *testing.T, p []byte) {
	if got, want := Count(p), utf8.RuneCount(p); got != want {
		t.Fatalf("%d bytes: %d runes, want %d", len(p), got, want)
	}
}

func TestCorpora(t *testing.T) {
	for _, text := range [][]byte{corpus.WarAndPeace(), corpus.CJK(), corpus.Random(1 << 16)} {
		check(t, text)
	}
}

// Texts of every length, valid and with one byte that is not.
func TestCount(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, unit := range []string{"plain text\n", "\n", "é", "数据\n", "🙂a", "\x80"} {
		long := []byte(strings.Repeat(unit, 20_000/len(unit)+1))
		for n := range 200 {
			check(t, long[:n])
			check(t, long[n:2*n])
		}
		for range 20 {
			p := bytes.Clone(long[:r.IntN(len(long))])
			check(t, p)
			if len(p) > 0 {
				p[r.IntN(len(p))] = byte(r.IntN(256))
				check(t, p)
			}
		}
	}
}

// Every four bytes of those at which UTF-8 makes a difference, in the middle of a text.
func TestCountBoundaries(t *testing.T) {
	edges := []byte(
		"\x00\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xf7\xf8\xff",
	)
	p := bytes.Repeat([]byte("a"), 140)
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				for _, d := range edges {
					copy(p[13:], []byte{a, b, c, d})
					check(t, p)
				}
			}
		}
	}
}

func BenchmarkCount(b *testing.B) {
	for name, unit := range map[string]string{
		"ascii": "a line of a log\n", "cyrillic": "строка журнала\n", "random": string(corpus.Random(1 << 16)),
	} {
		p := []byte(strings.Repeat(unit, 64<<10/len(unit)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				Count(p)
			}
		})
	}
}

// Bits of newlines, of texts of every length, each as it was before or not.
func TestNewlines(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	p := make([]byte, 700)
	for i := range p {
		p[i] = "\n\x0b\x8a a"[r.IntN(5)]
	}
	for n := range p {
		at := make([]uint64, (n+63)/64)
		for i := range at {
			at[i] = r.Uint64()
		}
		Newlines(p[:n], at)
		for i := range 64 * len(at) {
			if got, want := at[i/64]>>(i%64)&1 == 1, i < n && p[i] == '\n'; got != want {
				t.Fatalf("%d bytes: at %d %v, want %v", n, i, got, want)
			}
		}
	}
}

// Invalid is utf8.Valid, with the offset.
func FuzzInvalid(f *testing.F) {
	f.Add([]byte("ab ü\xffcdefghij"), uint8(3))
	f.Fuzz(func(t *testing.T, p []byte, from uint8) {
		p = p[min(int(from), len(p)):]
		at := Invalid(p)
		if at < 0 != utf8.Valid(p) || at >= 0 && (!utf8.Valid(p[:at]) || utf8.Valid(p[:min(at+1, len(p))])) {
			t.Errorf("%q: %d", p, at)
		}
	})
}
