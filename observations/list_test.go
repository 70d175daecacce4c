package observations

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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

// A name changes, and nothing else; only by the owner of an observation that is there.
func TestRename(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		c := newClock()
		s := open(t, Options{Dir: filepath.Join(t.TempDir(), "store"), Now: c.now})
		r := record(t, s, Provenance{Tool: "run", Name: "old", Args: json.RawMessage(`{"a":1}`)}, []byte("text\n"))
		o := value(r.Commit(Stats{Lines: 1, Receipt: "r"}))
		must(t, s.Pin(Local, o.ID, true))
		before, usage := value(s.Stat(Local, o.ID)), value(s.Usage()).Bytes
		for _, name := range []string{"new", strings.Repeat("ä", 100), "<b>\n\u202e", "", "four"} {
			c.pass(time.Hour)
			must(t, s.Rename(Local, o.ID, name))
			want := before
			want.Name = name
			if d := cmp.Diff(want, value(s.Stat(Local, o.ID))); d != "" {
				t.Errorf("%q (-want +got):\n%s", name, d)
			}
			if list := value(s.List(Local, false)); list[0].Name != name {
				t.Errorf("listed as %q", list[0].Name)
			}
			expectWhole(t, s, o.ID)
		}
		if other := open(t, s.options); value(other.Stat(Local, o.ID)).Name != "four" {
			t.Error("another process does not see the name")
		}
		if grew := value(s.Usage()).Bytes - usage; grew < 0 || grew > 1 {
			t.Errorf("the store grew by %d bytes for one more in a name", grew)
		}
		gone := keep(t, s, Provenance{Tool: "run"}, []byte("x"))
		must(t, s.Remove(Local, gone.ID))
		for _, k := range []struct {
			owner, name string
			id          ID
			want        error
		}{{"eve", "x", o.ID, ErrNotFound}, {Local, "x", RandomID(), ErrNotFound}, {Local, "x", gone.ID, ErrExpired}, {Local, "x", "../x", ErrMalformed}} {
			if err := s.Rename(k.owner, k.id, k.name); !errors.Is(err, k.want) {
				t.Errorf("%s renames obs:%s: %v, want %v", k.owner, k.id, err, k.want)
			}
		}
		if err := s.Rename(Local, o.ID, strings.Repeat("x", 201)); err == nil || !strings.Contains(err.Error(), "201 bytes, at most 200") {
			t.Errorf("a name of 201 bytes: %v", err)
		}
		if name := value(s.Stat(Local, o.ID)).Name; name != "four" {
			t.Errorf("a refused name changed the old one to %q", name)
		}
	})
}
