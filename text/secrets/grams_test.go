package secrets

import (
	"math/rand/v2"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// mixtures are texts in which keywords stand at every distance from each other, whole, cut, in either case, among
// other bytes.
func mixtures(n int) [][]byte {
	r := rand.New(rand.NewPCG(4, 2))
	var out [][]byte
	for range n {
		var b []byte
		for want := vectorsFrom + r.IntN(4*vectorsFrom); len(b) < want; {
			switch r.IntN(4) {
			case 0:
				h := Formats()[r.IntN(len(Formats()))].hits(nil)
				if len(h) == 0 {
					continue
				}
				k := []byte(h[r.IntN(len(h))].keyword)
				if r.IntN(3) == 0 {
					k[r.IntN(len(k))] ^= 0x20
				}
				b = append(b, k[r.IntN(2):]...)
			case 1:
				for range r.IntN(90) {
					b = append(b, byte(r.IntN(256)))
				}
			case 2:
				for range r.IntN(100) {
					b = append(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="[r.IntN(65)])
				}
			default:
				b = append(b, " the quick brown token=fox, "[r.IntN(20):]...)
			}
		}
		b = b[r.IntN(40):]
		out = append(out, b)
	}
	return out
}

// Vectors find what looking at each place by itself finds.
func TestVectorsFindTheSame(t *testing.T) {
	promise.WithoutRace(t)
	if !haveVectors {
		t.Skip("no vectors here")
	}
	f := defaultFilter()
	texts := append(
		mixtures(40), corpus.WarAndPeace()[:1<<16], corpus.JSON1MB()[:1<<16], corpus.PanicLog()[:1<<16], corpus.Random(1<<14),
	)
	for _, b := range texts {
		var a candidates
		for at := 0; at+gram <= len(b); at += 1 + at%977 {
			a.fill(f, b, at)
			n := a.to - at
			if n == 0 || n > candidateBytes || n%32 != 0 && len(b)-at >= 32+gram && len(b) >= vectorsFrom {
				t.Fatalf("%d bytes of %d from %d on", n, len(b), at)
			}
			for i := range n {
				may := a.may[i/64]>>(i%64)&1 != 0
				if isGram := f.at(b, at+i) != nil; isGram && !may {
					t.Fatalf("at %d of %d bytes, from %d on: a candidate: %v, a gram: %v", at+i, len(b), at, may, isGram)
				}
			}
		}
	}
}

// No window is passed over, and most text is.
func TestSetsHoldAllGrams(t *testing.T) {
	f := defaultFilter()
	sets, may := f.nibbles(), make([]uint64, 1)
	for _, g := range f.grams() {
		for _, in := range [][]byte{{byte(g), byte(g >> 8), byte(g >> 16), byte(g >> 24)}, {byte(g) &^ 0x20, byte(g>>8) &^ 0x20, byte(g>>16) &^ 0x20, byte(g>>24) &^ 0x20}} {
			if sets.mask(in, 0, 1, may); may[0] != 1 {
				t.Errorf("%q is passed over", in)
			}
			if !f.known.has(foldGram(in)) {
				t.Errorf("%q is not known", in)
			}
		}
	}
	if n := len(f.grams()); n < 200 || n > len(f.table)/2 {
		t.Errorf("%d grams", n)
	}
	for name, b := range map[string][]byte{"prose": corpus.WarAndPeace()[:1<<18], "json": corpus.JSON1MB()[:1<<18], "log": corpus.PanicLog()[:1<<18]} {
		n := 0
		for at := 0; at+gram <= len(b); at++ {
			sets.mask(b, at, 1, may)
			n += int(may[0])
		}
		if n*16 > len(b) {
			t.Errorf("%s: of %d places %d may begin a gram: looking closer at them costs more than it saves", name, len(b), n)
		}
		t.Logf("%s: %d of %d places", name, n, len(b))
	}
}

// mask sets in out the bit of each of the n places from i on at which a gram of a set may begin.
func (t *nibbles) mask(b []byte, i, n int, out []uint64) {
	clear(out[:(n+63)/64])
	for at := range n {
		first, second := byte(0xff), byte(0xff)
		for k := range gram {
			low, high := b[i+at+k]&15, b[i+at+k]>>4
			first &= t[2*k][low] & t[2*k+1][high]
			second &= t[2*k][16+low] & t[2*k+1][16+high]
		}
		if first|second != 0 {
			out[at/64] |= 1 << (at % 64)
		}
	}
}
