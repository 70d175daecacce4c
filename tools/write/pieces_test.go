package write

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPiecesAgreeWithStrings makes random replacements one after another, beside package strings.
func TestPiecesAgreeWithStrings(t *testing.T) {
	t.Parallel()
	const letters = "aab\n"
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return string(b)
	}
	for range 2000 {
		text := random(rng.IntN(60))
		p := newPieces(strings.NewReader(text), int64(len(text)))
		for range 5 {
			old, by := random(1+rng.IntN(4)), random(rng.IntN(4))
			found, n, err := p.find(t.Context(), []byte(old), 1, maxMatches)
			want, apart, end := 0, []int64{}, int64(0)
			for i := range text {
				if strings.HasPrefix(text[i:], old) {
					want++
				}
			}
			for _, at := range found {
				if at >= end {
					apart, end = append(apart, at), at+int64(len(old))
				}
			}
			if err != nil || n != want || len(apart) != strings.Count(text, old) {
				t.Fatalf("%q in %q: %d matches, %d wanted, %d apart, %v", old, text, n, want, len(apart), err)
			}
			if rng.IntN(2) == 0 && n > 0 { // one of them
				at := found[rng.IntN(n)]
				p.replace([]place{{at: at, n: int64(len(old)), text: []byte(by)}})
				text = text[:at] + by + text[at+int64(len(old)):]
			} else {
				var all []place
				for _, at := range apart {
					all = append(all, place{at: at, n: int64(len(old)), text: []byte(by)})
				}
				p.replace(all)
				text = strings.ReplaceAll(text, old, by)
			}
			got, err := io.ReadAll(p.reader())
			if err != nil || string(got) != text || p.size() != int64(len(text)) {
				t.Fatalf("after %q by %q: %s", old, by, cmp.Diff(text, string(got)))
			}
			from := rng.Int64N(int64(len(text)) + 1)
			to := from + rng.Int64N(int64(len(text))-from+1)
			if part, err := p.section(from, to); err != nil || string(part) != text[from:to] {
				t.Fatalf("bytes %d-%d of %q: %q, %v", from, to, text, part, err)
			}
		}
	}
}

// TestFindAcrossBlocks looks for a text that lies on the border of two blocks, and for code units of two bytes.
func TestFindAcrossBlocks(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte{'x'}, 2*blockSize)
	copy(text[blockSize-3:], "needle")
	p := newPieces(bytes.NewReader(text), int64(len(text)))
	if found, n, err := p.find(t.Context(), []byte("needle"), 1, 10); err != nil || n != 1 || found[0] != blockSize-3 {
		t.Errorf("found %v, %d, %v", found, n, err)
	}
	if _, n, _ := p.find(t.Context(), []byte("needle"), 2, 10); n != 0 {
		t.Errorf("%d matches at an odd offset", n)
	}
}
