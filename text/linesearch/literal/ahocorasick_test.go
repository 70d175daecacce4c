package literal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// FuzzAhoCorasick compares what is found with a search for each text by itself.
func FuzzAhoCorasick(f *testing.F) {
	f.Add("abcd,bc,c,bc", []byte("xabcd bcd"), false)
	f.Add("he,she,his,hers", []byte("ushers"), false)
	f.Add("aab,ab,b", []byte("AABaab"), true)
	f.Fuzz(func(t *testing.T, list string, b []byte, fold bool) {
		texts := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
		if len(texts) == 0 || len(list)+len(b) > 2000 {
			return
		}
		alike, same := map[byte]byte{}, b
		if fold {
			for c := byte('a'); c <= 'z'; c++ {
				alike[c-'a'+'A'] = c
			}
			for i, s := range texts {
				texts[i] = string(lowerASCII([]byte(s)))
			}
			same = lowerASCII(bytes.Clone(b))
		}
		a := NewAhoCorasick(texts, alike)
		if a == nil {
			t.Skip("too many bytes")
		}
		checkEnds(t, a, texts, b, same)
		for _, accept := range []func(text, start, end int) bool{
			nil, func(text, _, end int) bool { return (text+end)%2 == 0 },
		} {
			for from := range len(b) + 1 {
				text, start, end := -1, len(b), len(b)
				for i, s := range texts {
					for at := from; ; at++ {
						next := bytes.Index(same[at:], []byte(s))
						if next < 0 {
							break
						}
						if at += next; accept != nil && !accept(i, at, at+len(s)) {
							continue
						}
						if at < start {
							text, start, end = i, at, at+len(s)
						}
						break
					}
				}
				gotText, gotStart, gotEnd := a.First(b, from, accept)
				if gotText != text || gotStart != start || gotEnd != end {
					t.Fatalf("%q from %d of %q: text %d at %d-%d, want %d at %d-%d",
						texts, from, b, gotText, gotStart, gotEnd, text, start, end)
				}
			}
		}
	})
}

func lowerASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return b
}

// checkEnds compares Ends with a search for each text at each position, in a text that is large enough for lanes too.
func checkEnds(t *testing.T, a *AhoCorasick, texts []string, b, same []byte) {
	t.Helper()
	for _, times := range []int{1, 1 + 9000/(len(b)+1)} {
		long, in := bytes.Repeat(b, times), bytes.Repeat(same, times)
		var want []uint32
		for i := range in {
			if slices.ContainsFunc(texts, func(s string) bool { return bytes.HasSuffix(in[:i+1], []byte(s)) }) {
				want = append(want, uint32(i+1))
			}
		}
		if got := a.Ends(long, nil); !slices.Equal(got, want) {
			t.Fatalf("%q in %d times %q: ends %d, want %d", texts, times, b, got, want)
		}
	}
}
