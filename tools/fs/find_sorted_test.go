package fs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/tree"
)

// bySize finds in memory, and shows by size.
func bySize(t *testing.T) (*finder, *answer) {
	t.Helper()
	a := &answer{counts: map[string]float64{}}
	f := &finder{out: a}
	f.Sort = "size"
	f.writer = f.newWriter(t.Context(), nil)
	t.Cleanup(f.writer.(*sortedWriter).release)
	return f, a
}

// Of more entries than are put in order the first ones in that order are listed, and the others told of.
func TestSortedIsBounded(t *testing.T) {
	const over = 1000
	f, a := bySize(t)
	for i := range int64(maxSorted + over) { // the largest neither first nor last
		if err := f.addEntry(
			foundEntry{Path: fmt.Sprintf("f%06d", i), Type: tree.File, Size: i * 7919 % (maxSorted + over)},
		); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.writer.finish(); err != nil {
		t.Fatal(err)
	}
	f.reportTotals()
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
	if said := strings.Join(a.notes, "\n"); !strings.Contains(
		said, fmt.Sprintf("the first %d of %d in this order", maxSorted, maxSorted+over),
	) {
		t.Errorf("told: %s", said)
	}
}

// However long the names are, little more of them is held than what is said, and what is listed is still the first in
// that order.
func TestSortedNamesAreBounded(t *testing.T) {
	const entries, long = 9000, 4000
	f, a := bySize(t)
	for i := range int64(entries) {
		size := i * 7919 % entries
		name := strings.Repeat("x", int(size%2)*long+10) // every other is short
		if err := f.addEntry(foundEntry{Path: name, Type: tree.File, Size: size}); err != nil {
			t.Fatal(err)
		}
		if o := f.writer.(*sortedWriter); o.names > maxSortedNames/4*5 { // a fourth waits for the next sort
			t.Fatalf("%d bytes of names are held", o.names)
		}
	}
	if err := f.writer.finish(); err != nil {
		t.Fatal(err)
	}
	f.reportTotals()
	n := 0
	for line := range strings.Lines(a.String()) {
		if want := fmt.Sprintf(`"size":%d,`, entries-1-n); !strings.Contains(line, want) {
			t.Fatalf("line %d: %.100s, want %s", n, line[len(line)-100:], want)
		}
		n++
	}
	if least := 2 * (maxSortedNames/(long+20) - 1); n < least || n >= entries {
		t.Errorf("%d listed, at least %d have room", n, least)
	}
	if said := strings.Join(a.notes, "\n"); !strings.Contains(
		said, fmt.Sprintf("the first %d of %d in this order", n, entries),
	) {
		t.Errorf("told: %s", said)
	}
}

// A call that puts much in order waits where as many as may be are at it, no longer than it has time, and gives its
// place back.
func TestLargeSortsTakeTurns(t *testing.T) {
	fill := func(ctx context.Context, n int) (*sortedWriter, error) {
		f := &finder{out: &answer{counts: map[string]float64{}}}
		f.Sort = "size"
		show := f.newWriter(ctx, nil)
		var err error
		for i := 0; err == nil && i < n; i++ {
			err = show.writeEntry(foundEntry{Path: "f", Size: int64(i)})
		}
		return show.(*sortedWriter), err
	}
	soon, stop := context.WithTimeout(t.Context(), 5*time.Minute) // against hanging
	defer stop()
	var holders []*sortedWriter
	for range maxLargeSorts {
		o, err := fill(soon, maxSortedFreely+1)
		if err != nil {
			t.Fatal(err)
		}
		holders = append(holders, o)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := fill(ended, maxSortedFreely+1); !errors.Is(err, context.Canceled) {
		t.Errorf("one more at once: %v", err)
	}
	if _, err := fill(ended, maxSortedFreely); err != nil {
		t.Errorf("one that holds little: %v", err)
	}
	long := foundEntry{Path: strings.Repeat("f", maxNamesFreely)}
	if o, err := fill(ended, 0); err != nil || o.writeEntry(long) != nil || o.writeEntry(long) != nil ||
		!errors.Is(o.writeEntry(long), context.Canceled) {
		t.Errorf("one with long names takes no turn: %v", err)
	}
	for _, o := range holders {
		o.release()
	}
	o, err := fill(soon, maxSortedFreely+1)
	if err != nil {
		t.Error(err)
	}
	o.release()
	if len(largeSorts) != 0 {
		t.Errorf("%d places are still taken", len(largeSorts))
	}
}
