package summary

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
)

// What is looked for in a whole piece is found wherever the text is cut, and where an escape sequence hides it.
func TestMarksWhereverCut(t *testing.T) {
	text := []byte("2026-11-20T12:00:00Z INFO start of it\n" +
		"2026-11-20T12:00:01Z INFO http: \x1b[31mpan\x1b[0mic serving 10.0.0.1:80: oh\n" +
		"2026-11-20T12:00:02Z INFO thread 'main' panicked at src/main.rs:1\n" +
		"Nov 20 12:00:03 host kernel: [1.2] Out of memory: Killed process 12 (a)\n" +
		"2026-11-20T12:00:04Z INFO end of it\n")
	want := finish(content.Log, text)
	if says := strings.Join(append(want.Total, want.Says...), "\n"); !strings.Contains(says, "2 panics") || !strings.Contains(says, "1 crash") {
		t.Fatalf("not all is found:\n%s", says)
	}
	for at := range text {
		d := digestAs(content.Log, text)
		_, _ = d.Write(text[:at])
		_, _ = d.Write(text[at:])
		if got := d.Close(); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d:\n%+v, not\n%+v", at, got, want)
		}
	}
}

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
