package secrets

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A stretch says what a look at each byte says, wherever it is asked.
func TestStretchIsTheRun(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for range 200 {
		b := make([]byte, 300)
		for i := range b {
			b[i] = "aaaaaaaaaaaaaaaa b"[r.IntN(18)]
		}
		var s cachedRun
		for range 200 {
			i, limit := r.IntN(len(b)+1), 1+r.IntN(60)
			if got, want := s.of(alnum.run, b, i, limit), alnum.run(b[i:], limit); got != want {
				t.Fatalf("from %d, at most %d: %d, want %d, in %q", i, limit, got, want, b)
			}
		}
	}
}

// What one look found is not looked at again by the next one, where a text is full of beginnings: the end of a run of
// letters, and a name that has nothing behind it.
func TestNothingIsLookedAtTwice(t *testing.T) {
	scanned := func(piece string) *scan {
		s := &scan{b: []byte(strings.Repeat(piece, 400)), final: true, f: defaultFilter()}
		if all := s.findAll(); len(all) > 0 {
			t.Errorf("%d found in %q", len(all), piece)
		}
		return s
	}
	for _, piece := range []string{"eyJ" + "sk-", "eyJhbGciOiJ" + "PMAK-"} {
		if s := scanned(piece); s.words.to != len(s.b) || s.words.from > len(piece) {
			t.Errorf("%q: %+v", piece, s.words)
		}
	}
	if s := scanned("XXauthorization:authorization:"); s.values.to != len(s.b) || s.values.from > 40 {
		t.Errorf("%+v", s.values)
	}
	s := &scan{b: []byte("my_pass" + "word_secret: none"), final: true, f: defaultFilter()}
	if s.findAll(); s.lastName != (cachedRun{0, len("my_pass" + "word_secret")}) {
		t.Errorf("%+v", s.lastName)
	}
}
