package observations

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestListNewestFirst(t *testing.T) {
	c := newClock()
	s := open(t, Options{Now: c.now})
	var want []ID
	for i := range 5 {
		o := value(record(t, s, Provenance{Tool: "find"}, fmt.Appendf(nil, "%d", i)).Commit(Stats{Ext: "txt", Receipt: "r"}))
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
}

// So many that several are read at a time: the same as one by one.
func TestListOfMany(t *testing.T) {
	s := open(t, Options{Dir: filepath.Join(scratch(t), "store")})
	want := map[ID]bool{}
	for i := range 250 {
		o := keep(t, s, Provenance{Owner: []string{"ann", "bob"}[i%2]}, fmt.Appendf(nil, "%d", i))
		if i%2 == 0 {
			want[o.ID] = i%10 == 0
		}
		if i%10 == 0 {
			must(t, s.Pin("ann", o.ID, true))
		}
	}
	list, err := s.List("ann", false)
	if err != nil || len(list) != len(want) {
		t.Errorf("%d are listed, %v; want %d", len(list), err, len(want))
	}
	for _, o := range list {
		if pinned, mine := want[o.ID]; !mine || o.Pinned != pinned {
			t.Errorf("obs:%s is listed, pinned %v", o.ID, o.Pinned)
		}
	}
	for what, s := range map[string]*Store{"stat": s, "read": open(t, Options{Dir: s.Dir()})} { // the other remembers none
		s.files.disk.Fault = func(op, name string) error {
			if op == what && strings.HasSuffix(name, sideExt) {
				return syscall.EIO
			}
			return nil
		}
		if _, err := s.List("ann", false); !errors.Is(err, syscall.EIO) {
			t.Errorf("on a disk where %s fails: %v", what, err)
		}
		s.files.disk.Fault = nil
		if list, err := s.List("ann", false); err != nil || len(list) != len(want) {
			t.Errorf("after %s failed, %d are listed, %v; want %d", what, len(list), err, len(want))
		}
	}
}
