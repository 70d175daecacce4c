package literal

import (
	"bytes"
	"fmt"
	"testing"
)

// Of a needle whose rare bytes stand in every line, others are looked for: few places remain to be looked at twice.
// What is found stays the same.
func TestAPairLearnsFromATextInWhichItsBytesAreCommon(t *testing.T) {
	if !haveTeddy {
		t.Skip("pairs are looked for with vectors only, which this processor has not")
	}
	var text []byte
	for i := range 50_000 {
		text = fmt.Appendf(text, "line %d path=/v1/items Status=%d took=%dms\n", i, 200+i%7*(i%1000/990)*50, i%300)
	}
	for _, Needle := range []Needle{newNeedle("tatus=5", false), newNeedle("status=5", true)} {
		wrong := func(p *pair) (n int, found []int) {
			for at := 0; at < len(text); at++ {
				if at, _ = p.next(text, at); at < len(text) {
					if p.equals(text[at : at+len(p.Text)]) {
						found = append(found, at)
					} else {
						n++
					}
				}
			}
			return n, found
		}
		p := newPair(Needle)
		before, want := wrong(p)
		if before < 40_000 || len(want) == 0 {
			t.Fatalf("%+v: %d wrong places and %d right ones: the test means nothing", Needle, before, len(want))
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
			t.Errorf("%+v: found at %v in %d lines, want %v", Needle, got, lines, want)
		}
		if after, _ := wrong(p); after > before/50 {
			t.Errorf("%+v: %d wrong places, %d once it had learnt", Needle, before, after)
		}
		if p.replaced > 4 {
			t.Errorf("%+v: moved %d times", Needle, p.replaced)
		}
	}
}
