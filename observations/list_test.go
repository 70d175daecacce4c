package observations

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestListNewestFirst(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now})
	var want []ID
	for i := range 5 {
		o, err := record(t, s, Made{Tool: "find"}, fmt.Appendf(nil, "%d", i)).Commit(Seen{Ext: "txt", Receipt: "r"})
		if err != nil {
			t.Fatal(err)
		}
		want = append([]ID{o.ID}, want...)
		c.pass(time.Second)
	}
	if err := s.Remove(Local, want[2]); err != nil {
		t.Fatal(err)
	}
	ids := func(tombstones bool) (ids []ID) {
		list, err := s.List(Local, tombstones)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			ids = append(ids, o.ID)
			if o.Seen.Receipt != "" {
				t.Error("a list carries receipts")
			}
		}
		return ids
	}
	if d := cmp.Diff(want, ids(true)); d != "" {
		t.Errorf("with tombstones (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]ID{want[0], want[1], want[3], want[4]}, ids(false)); d != "" {
		t.Errorf("without (-want +got):\n%s", d)
	}
	if o, err := s.Look(Local, want[0]); err != nil || o.Seen.Receipt != "r" {
		t.Errorf("Look = %q, %v", o.Seen.Receipt, err)
	}
}
