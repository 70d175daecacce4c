package literal

import (
	"bytes"
	"fmt"
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
		p := newTeddy(ns[:1])
		hs := NewFinders(ns)
		for at := 0; at < len(text); at = lineEnd(text, at) {
			got, _, lines := p.Find(text, at)
			if want, _ := NewFinders(ns[:1]).Find(text, at); got != want ||
				lines != bytes.Count(text[at:got], newline) {
				t.Fatalf("%q from %d of %q: %d after %d lines, want %d", ns[0].Text, at, text, got, lines, want)
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

// Of a needle whose rare bytes stand in every line, others are looked for: few places remain to be looked at twice.
// What is found stays the same.
func TestOneNeedleLearnsFromATextInWhichItsBytesAreCommon(t *testing.T) {
	if !haveTeddy {
		t.Skip("no vectors here")
	}
	var text []byte
	for i := range 50_000 {
		text = fmt.Appendf(text, "line %d path=/v1/items Status=%d took=%dms\n", i, 200+i%7*(i%1000/990)*50, i%300)
	}
	for _, needle := range []Needle{newNeedle("tatus=5", false), newNeedle("status=5", true)} {
		wrong := func(p *teddy) (n int, found []int) {
			x := p.buckets[0][0]
			for i := 0; i < len(text); i++ {
				if i, _ = p.next(text, i); i < len(text) {
					if at := i - x.at; x.equals(text[at : at+len(x.Text)]) {
						found = append(found, at)
					} else {
						n++
					}
				}
			}
			return n, found
		}
		p := newTeddy([]Needle{needle})
		before, want := wrong(p)
		if before < 40_000 || len(want) == 0 {
			t.Fatalf("%+v: %d wrong places and %d right ones: the test means nothing", needle, before, len(want))
		}
		lines, block := 0, text
		var got []int
		for len(block) > 0 {
			at, _, passed := p.Find(block, 0)
			if lines += passed; at == len(block) {
				break
			}
			got = append(got, len(text)-len(block)+at)
			block = block[at+1:]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || lines != bytes.Count(text, newline) {
			t.Errorf("%+v: found at %v in %d lines, want %v", needle, got, lines, want)
		}
		if after, _ := wrong(p); after > before/50 {
			t.Errorf("%+v: %d wrong places, %d once it had learnt", needle, before, after)
		}
		if p.replaced > 4 {
			t.Errorf("%+v: moved %d times", needle, p.replaced)
		}
	}
}
