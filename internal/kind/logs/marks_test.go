package logs

import (
	"bytes"
	"testing"
)

// The cache of templates grows as one that was as large from the start.
func TestCacheGrows(t *testing.T) {
	small, large := newTemplates(), newTemplates()
	large.cache = make([]cached, cacheSize)
	for i := range 40_000 {
		h := uint64(i%7919) * 0x9E3779B97F4A7C15
		a, b := small.slot(h), large.slot(h)
		if hit := b.is != nil && b.hash == h; (a.is != nil && a.hash == h) != hit {
			t.Fatalf("hash %d: another answer than of a cache of full size", i)
		}
		*a, *b = cached{h, &template{}}, cached{h, &template{}}
	}
	if len(small.cache) != cacheSize {
		t.Errorf("it grew to %d", len(small.cache))
	}
}

// What is looked for at once is what is found by looking for each, wherever it stands in a piece of whatever length.
func TestMarksAtOnce(t *testing.T) {
	for _, word := range []string{"\x1b", "panic", "kernel: ", "(most recent call last)", "(core dumped)", "l:", "p nic", "(m", "(c", "kernel:", "(most recent call last", "pxnxc(c"} {
		for size := len(word); size < 140; size++ {
			for at := range size - len(word) + 1 {
				p := bytes.Repeat([]byte("p"), size)
				copy(p[at:], word)
				var got, want marks
				got.look(p)
				want.search(p, allMarks)
				if got != want {
					t.Fatalf("%q at %d of %d: %+v, want %+v", word, at, size, got, want)
				}
			}
		}
	}
}
