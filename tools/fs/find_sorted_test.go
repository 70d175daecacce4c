package fs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/internal/tree"
)

// Of more entries than are put in order the first ones in that order are listed, and the others told of.
func TestSortedIsBounded(t *testing.T) {
	const over = 1000
	a := &answer{counts: map[string]float64{}}
	f := &finder{out: a}
	f.Sort = "size"
	var err error
	if f.show, err = f.shower(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range int64(maxSorted + over) { // the largest neither first nor last
		if err := f.take(found{Path: fmt.Sprintf("f%06d", i), Type: tree.File, Size: i * 7919 % (maxSorted + over)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.show.end(); err != nil {
		t.Fatal(err)
	}
	f.tell()
	n, last := 0, int64(0)
	for line := range strings.Lines(a.String()) {
		want := fmt.Sprintf(`"size":%d,`, maxSorted+over-1-n)
		if !strings.Contains(line, want) {
			t.Fatalf("line %d: %s, want %s", n, line, want)
		}
		last = int64(maxSorted + over - 1 - n)
		n++
	}
	if n != maxSorted || last != over {
		t.Errorf("%d listed, the last of size %d", n, last)
	}
	if a.told != maxSorted { // the files are read only now, where they are to be measured
		t.Errorf("progress was told %d times while they were shown", a.told)
	}
	if said := strings.Join(a.notes, "\n"); !strings.Contains(said, fmt.Sprintf("the first %d of %d in this order", maxSorted, maxSorted+over)) {
		t.Errorf("told: %s", said)
	}
}
