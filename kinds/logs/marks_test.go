package logs

import (
	"bytes"
	"testing"
)

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
