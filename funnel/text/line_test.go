package text

import (
	"math/rand/v2"
	"testing"
)

// Of plain text the ends are cut without asking where its graphemes are: they are the same ends.
func TestEndsOfPlainText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	see := func(s string) string { return VisibleLine(s, true) }
	for range 2000 {
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(' ' + r.IntN(0x7f-' '))
		}
		s, room, cut := string(b), r.IntN(70)-5, r.IntN(2) == 0
		got, n := fittingPrefix(s, room, see)
		if want, m := graphemePrefix(s, room, see); got != want || n != m {
			t.Fatalf("%q in %d: %q, %d; want %q, %d", s, room, got, n, want, m)
		}
		got, n = fittingSuffix(s, cut, room, see)
		if want, m := graphemeSuffix(s, cut, room, see); got != want || n != m {
			t.Fatalf("the end of %q in %d, cut %v: %q, %d; want %q, %d", s, room, cut, got, n, want, m)
		}
	}
}
