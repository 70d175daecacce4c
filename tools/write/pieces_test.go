package write

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcp-funnel/mcp-funnel/text/content"
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
		p := &pieces{list: []piece{newPiece([]byte(text))}, enc: content.UTF8}
		for range 5 {
			old, by := random(1+rng.IntN(4)), random(rng.IntN(4))
			found, n, err := p.find(t.Context(), old, maxMatches)
			want, apart, end := 0, []place{}, int64(0)
			for i := range text {
				if strings.HasPrefix(text[i:], old) {
					want++
				}
			}
			for _, one := range found {
				one.by = newPiece([]byte(by))
				if one.at >= end {
					apart, end = append(apart, one), one.end()
				}
			}
			if err != nil || n != want || len(apart) != strings.Count(text, old) {
				t.Fatalf("%q in %q: %d matches, %d wanted, %d apart, %v", old, text, n, want, len(apart), err)
			}
			if rng.IntN(2) == 0 && n > 0 { // one of them
				one := found[rng.IntN(n)]
				one.by = newPiece([]byte(by))
				p.splice([]place{one})
				text = text[:one.at] + by + text[one.end():]
			} else {
				p.splice(apart)
				text = strings.ReplaceAll(text, old, by)
			}
			got, err := p.bytes()
			if err != nil || string(got) != text || p.size() != int64(len(text)) {
				t.Fatalf("after %q by %q: %s", old, by, cmp.Diff(text, string(got)))
			}
			from := rng.Int64N(int64(len(text)) + 1)
			to := from + rng.Int64N(int64(len(text))-from+1)
			if part, err := p.part(from, to).bytes(); err != nil || string(part) != text[from:to] {
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
	p := &pieces{list: []piece{newPiece(text)}, enc: content.UTF8}
	if found, n, err := p.find(t.Context(), "needle", 10); err != nil || n != 1 || found[0].at != blockSize-3 {
		t.Errorf("found %v, %d, %v", found, n, err)
	}
	copy(text[blockSize-3:], "n\x00e\x00")
	p.enc = content.UTF16LE
	if _, n, _ := p.find(t.Context(), "ne", 10); n != 0 {
		t.Errorf("%d matches at an odd offset", n)
	}
}
