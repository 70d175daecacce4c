package write

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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

// TestFindWhatRepeatsItself looks for texts that overlap themselves, also over the borders of blocks. A search that begins
// anew at each place would take hours.
func TestFindWhatRepeatsItself(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	p := &pieces{list: []piece{newPiece(bytes.Repeat([]byte("a"), size))}, enc: content.UTF8}
	if _, n, err := p.find(t.Context(), strings.Repeat("a", size/2), 10); err != nil || n != size/2+1 {
		t.Errorf("%d places, %v", n, err)
	}
	p.enc = content.UTF16LE
	found, n, err := p.find(t.Context(), strings.Repeat("\u6161", size/4), 10)
	if err != nil || n != size/4+1 || found[9].at != 18 {
		t.Errorf("%d places at even offsets, %v, %v", n, found, err)
	}
	for _, old := range []string{"abaab", "aba", "aabaa", "abababab"} {
		long := strings.Repeat("abaabaab"+strings.Repeat("ab", 9), blockSize/10)
		p, old := &pieces{list: []piece{newPiece([]byte(long))}, enc: content.UTF8}, strings.Repeat(old, 3)[:len(old)+2]
		want := 0
		for i := range long {
			if strings.HasPrefix(long[i:], old) {
				want++
			}
		}
		if _, n, err := p.find(t.Context(), old, 10); err != nil || n != want {
			t.Errorf("%s: %d places, not %d, %v", old, n, want, err)
		}
	}
}

// TestMillionsOfEqualLines looks for the nearest lines and for masks, where comparing each with each would take hours.
func TestMillionsOfEqualLines(t *testing.T) {
	t.Parallel()
	lines := slices.Repeat([]string{"end"}, 1_000_000)
	if at := nearest(append(lines, "x y z"), append(slices.Repeat([]string{"end"}, 300_000), "no")); at != 0 {
		t.Errorf("nearest is %d", at)
	}
	var masks strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&masks, "[masked: a k%d 1 chars]", i)
	}
	if err := maskedIn(masks.String(), "x"+masks.String()); err != nil {
		t.Error(err)
	}
	if err := maskedIn(masks.String(), masks.String()[1:]); err == nil {
		t.Error("a mask that was not there is no error")
	}
}
