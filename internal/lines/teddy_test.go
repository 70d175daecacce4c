package lines

import (
	"bytes"
	"testing"
)

// FuzzTeddy holds the vectors against the portable way, place by place, and what is found against looking for each needle by itself.
func FuzzTeddy(f *testing.F) {
	f.Add("foo", "bar", "error", []byte("a foo, and an ERROR\n"), false, byte(3))
	f.Add("ab", "zz", "a longer needle", []byte("xxabzz a longer needle"), true, byte(40))
	f.Add("\xff\xfe", "世界", "\x00\x00", []byte("\x00\x00\xff\xff\xfe世界"), false, byte(33))
	f.Fuzz(func(t *testing.T, x, y, z string, text []byte, fold bool, times byte) {
		var ns []needle
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
			got, want := td.next(text, at), td.nibbles.next(text, at)
			if got != want {
				t.Fatalf("from %d of %q: %d, want %d", at, text, got, want)
			}
			if at = got; at == len(text) {
				break
			}
		}
		p := newPair(ns[0])
		for at := 0; at < len(text); at++ {
			got, want := p.next(text, at), p.plain(text, at)
			if got != want {
				t.Fatalf("%q from %d of %q: %d, want %d", p.text, at, text, got, want)
			}
			at = got
		}
		hs := newHunts(ns)
		for at := 0; at < len(text); at = lineEnd(text, at) {
			if got, _ := p.find(text, at); got != index(text, at, p.text) {
				t.Fatalf("%q from %d of %q: %d", p.text, at, text, got)
			}
			got, end := td.find(text, at)
			want, _ := hs.find(text, at)
			if lineEnd(text, min(got, len(text))) != lineEnd(text, min(want, len(text))) || got < len(text) && end <= got {
				t.Fatalf("needles %+v from %d of %q: %d, want a place in the line of %d", ns, at, text, got, want)
			}
		}
	})
}

func index(b []byte, from int, text string) int {
	if i := bytes.Index(b[from:], []byte(text)); i >= 0 {
		return from + i
	}
	return len(b)
}
