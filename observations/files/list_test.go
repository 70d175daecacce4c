package files_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/observations/files"
)

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
		s.Disk().Fault = func(op, name string) error {
			if op == what && strings.HasSuffix(name, files.SideExt) {
				return syscall.EIO
			}
			return nil
		}
		if _, err := s.List("ann", false); !errors.Is(err, syscall.EIO) {
			t.Errorf("on a disk where %s fails: %v", what, err)
		}
		s.Disk().Fault = nil
		if list, err := s.List("ann", false); err != nil || len(list) != len(want) {
			t.Errorf("after %s failed, %d are listed, %v; want %d", what, len(list), err, len(want))
		}
	}
}
