package observations

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestListNewestFirst(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Now: c.now})
		var want []ID
		for i := range 5 {
			r := record(t, s, Provenance{Tool: "find"}, fmt.Appendf(nil, "%d", i))
			o := value(r.Commit(Stats{Ext: "txt", Receipt: "r"}))
			want = append([]ID{o.ID}, want...)
			c.pass(time.Second)
		}
		must(t, s.Remove(Local, want[2]))
		ids := func(tombstones bool) (ids []ID) {
			list := value(s.List(Local, tombstones))
			for _, o := range list {
				ids = append(ids, o.ID)
				if o.Stats.Receipt != "" {
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
		if o, err := s.Stat(Local, want[0]); err != nil || o.Stats.Receipt != "r" {
			t.Errorf("Look = %q, %v", o.Stats.Receipt, err)
		}
	})
}
