package literal

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Texts are found wherever bytes.Contains finds one, at every place of a text that may be long or short.
func TestTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	found := 0
	for range 4000 {
		text := make([]byte, r.IntN(300))
		for i := range text {
			text[i] = "ab c"[r.IntN(4)]
		}
		var want [2]string
		for i := range want {
			one := make([]byte, 3+r.IntN(6))
			for i := range one {
				one[i] = "ab c"[r.IntN(4)]
			}
			want[i] = string(one)
		}
		there := bytes.Contains(text, []byte(want[0])) || bytes.Contains(text, []byte(want[1]))
		if got := NewTexts(want[0], want[1]).In(text); got != there {
			t.Fatalf("%q in %q: %v", want, text, got)
		} else if got {
			found++
		}
	}
	if found < 500 {
		t.Errorf("only %d were there", found)
	}
}
