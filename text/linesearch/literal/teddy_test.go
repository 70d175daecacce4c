package literal

import (
	"bytes"
	"testing"
)

// FuzzTeddy holds the vectors against the portable way, place by place, and what is found against looking for each
// needle by itself.
func FuzzTeddy(f *testing.F) {
	f.Add("foo", "bar", "error", []byte("a foo, and an ERROR\n"), false, byte(3))
	f.Add("ab", "zz", "a longer needle", []byte("xxabzz a longer needle"), true, byte(40))
	f.Add("\xff\xfe", "世界", "\x00\x00", []byte("\x00\x00\xff\xff\xfe世界"), false, byte(33))
	f.Fuzz(func(t *testing.T, x, y, z string, text []byte, fold bool, times byte) {
		var ns []Needle
		for i, s := range []string{x, y, z, x + y, y + z, z + x, x + z, y + x, z + y + x} {
			if len(s) < 2 || bytes.ContainsAny([]byte(s), "\nkKsS") {
				return
			}
			ns = append(ns, newNeedle(string(bytes.ToLower([]byte(s))), fold && i%2 == 0))
		}
		td := newTeddy(ns)
		if td == nil {
			t.Skip("no vectors here")
		}
		text = append(bytes.Repeat(text, int(times)%64), '\n')
		for at := 0; at < len(text); at++ {
			got, lines := td.next(text, at)
			if want := td.nibbles.next(text, at); got != want || lines != bytes.Count(text[at:got], newline) {
				t.Fatalf("from %d of %q: %d after %d lines, want %d", at, text, got, lines, want)
			}
			if at = got; at == len(text) {
				break
			}
		}
		p := newPair(ns[0])
		for at := 0; at < len(text); at++ {
			got, lines := p.next(text, at)
			if want := p.nextScalar(text, at); got != want || lines != bytes.Count(text[at:got], newline) {
				t.Fatalf("%q from %d of %q: %d after %d lines, want %d", p.Text, at, text, got, lines, want)
			}
			at = got
		}
		hs := NewFinders(ns)
		for at := 0; at < len(text); at = lineEnd(text, at) {
			got, _, lines := p.Find(text, at)
			if want, _ := NewFinders(ns[:1]).Find(text, at); got != want ||
				lines != bytes.Count(text[at:got], newline) {
				t.Fatalf("%q from %d of %q: %d after %d lines, want %d", p.Text, at, text, got, lines, want)
			}
			got, end, lines := td.Find(text, at)
			if lines != bytes.Count(text[at:got], newline) {
				t.Fatalf("needles %+v from %d of %q: %d lines before %d", ns, at, text, lines, got)
			}
			want, _ := hs.Find(text, at)
			if lineEnd(text, min(got, len(text))) != lineEnd(text, min(want, len(text))) ||
				got < len(text) && end <= got {
				t.Fatalf("needles %+v from %d of %q: %d, want a place in the line of %d", ns, at, text, got, want)
			}
		}
	})
}

// lineEnd returns the position after the first newline at or after from.
func lineEnd(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(b)
}
