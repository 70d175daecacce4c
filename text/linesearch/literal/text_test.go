package literal

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A literal is found wherever bytes.Contains finds it, at every place of a text that may be long or short.
func TestLiteral(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	found := 0
	for range 4000 {
		text := make([]byte, r.IntN(300))
		for i := range text {
			text[i] = "ab c"[r.IntN(4)]
		}
		want := make([]byte, 2+r.IntN(6))
		for i := range want {
			want[i] = "ab c"[r.IntN(4)]
		}
		if got := NewText(string(want)).In(text); got != bytes.Contains(text, want) {
			t.Fatalf("%q in %q: %v", want, text, got)
		} else if got {
			found++
		}
	}
	if found < 500 {
		t.Errorf("only %d were there", found)
	}
}
